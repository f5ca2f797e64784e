"""The three hints that lead a new user on: selection, a larger block, the ladder. Each goes when done or dismissed."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.model.pipeline import Pipeline
from app.model.recent import Memory
from app.model.runs import Runs
from pipelines.config import MIXTURES, Config, presets

REMEMBERED = "hints"  # Under this key, the ids of hints that are over
SELECTION, BLOCK = "gmm.selection.enabled", "block"
LARGE_BLOCK = 16
LADDER = "ladder-1-scalar"


@dataclass(frozen=True)
class Hint:
    """One sentence; `fits` says whether it can be followed with these settings, `done` whether it has been."""

    id: str
    text: Callable[[Config], str]
    fits: Callable[[Config], bool]
    done: Callable[[Config], bool]


class Hints(QObject):
    """What to try next in a run that goes on; what has been tried or waved away is remembered."""

    changed = Signal()

    def __init__(self, pipeline: Pipeline, runs: Runs, memory: Memory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pipeline, self._runs, self._memory = pipeline, runs, memory
        self._over = set(memory.texts(REMEMBERED))
        ladder = presets.load(LADDER)
        named = self.tr("choose the preset {0}: one net, seven steps to speed").format(f"“{self.tr(ladder.title)}”")
        larger = self.tr("set Block to 16: parameters are read once for 16 frames")

        def selecting(c: Config) -> str:
            if c.model == "continuous" and c.block == 1:
                return self.tr("switch Gaussian selection on (G): watch memory shrink")
            return self.tr("switch Gaussian selection on (G): watch Gaussians fall")

        self.all = (
            Hint(
                "selection",
                selecting,
                lambda c: c.model in MIXTURES and not c.gmm.selection.enabled,
                lambda c: c.model in MIXTURES and c.gmm.selection.enabled,
            ),
            Hint(
                "block",
                lambda c: larger,
                lambda c: c.block < LARGE_BLOCK and c.model != "ctc",
                lambda c: c.block >= LARGE_BLOCK,
            ),
            Hint("ladder", lambda c: named, lambda c: True, lambda c: pipeline.preset.group == ladder.group),
        )
        pipeline.changed.connect(lambda *_: self._look())
        pipeline.replaced.connect(self._look)
        pipeline.toggles.readiness_changed.connect(self._look)
        runs.changed.connect(self._look)

    @property
    def current(self) -> Hint | None:
        """The hint to show now; None outside a run that is going on, and when there is none left."""
        running = self._pipeline.running
        if running is None or not self._runs.current.is_shown or self._pipeline.toggles.ready_in:
            return None
        left = (hint for hint in self.all if hint.id not in self._over)
        return next((hint for hint in left if hint.fits(running)), None)

    @property
    def text(self) -> str:
        running, hint = self._pipeline.running, self.current
        return "" if running is None or hint is None else hint.text(running)

    def number(self, hint: Hint) -> int:
        """Its place among all, from 1."""
        return self.all.index(hint) + 1

    def dismiss(self) -> None:
        if self.current is not None:
            self._end(self.current)

    def _look(self) -> None:
        """A hint that has been followed while it was the next one, or before, is over."""
        running = self._pipeline.running
        if running is not None:
            for hint in self.all:
                if hint.id not in self._over and hint.done(running):
                    self._end(hint)
        self.changed.emit()

    def _end(self, hint: Hint) -> None:
        self._over.add(hint.id)
        self._memory.remember(REMEMBERED, sorted(self._over))
        self.changed.emit()
