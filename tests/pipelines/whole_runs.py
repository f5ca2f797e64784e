"""Whole runs of the real recogniser, and a person who asks for things while one goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from pipelines import config as settings
from pipelines.audio import loading
from pipelines.config import Config, Value, assign, presets
from pipelines.experiments import perturb
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import sphinx
from pipelines.models.sphinx import AcousticModel
from pipelines.run import compiling
from pipelines.run.control import Control
from pipelines.run.session_run import Outcome, Request, RunOrder, execute
from profiler.arrays import Array
from profiler.session.reader import Session
from profiler.spans import TILING


def run(
    config: Config,
    audio: Iterable[Path],
    out: Path | None = None,
    control: Control | None = None,
    *,
    transcripts: Path | None = None,
    repeat: int = 1,
    order: RunOrder | None = None,
) -> Outcome:
    said = str(transcripts) if transcripts else None
    request = Request(config, "test", tuple(map(str, audio)), said, out, repeat)
    return execute(request, control or Control(), lambda *_: None, order=order)


def compiled(config: Config, *changes: Mapping[str, Value]) -> None:
    """Have what these changes of settings call compiled, so that they act at once."""
    for change in changes:
        _compiled(assign(config, change))


_compiled = cache(compiling.compile_for)


class Person(Control):
    """Does things when the run has come to given frames; `then` is called at every block boundary."""

    def __init__(
        self, *does: tuple[int, Callable[[Control], object]], then: Callable[[Person], object] = lambda person: None
    ) -> None:
        super().__init__()
        self.does, self.then = list(does), then

    @property
    def stopping(self) -> bool:
        while self.does and self.frame >= self.does[0][0]:
            self.does.pop(0)[1](self)
        self.then(self)
        return super().stopping


def ask(frame: int, key: str, value: object) -> tuple[int, Callable[[Control], object]]:
    """For `Person`: at `frame`, a setting is to change."""
    return frame, lambda control: control.ask(key, value)  # type: ignore[arg-type]


def assert_tiled(session: Session) -> None:
    """Tiles follow each other, and every leaf lies within one."""
    groups = np.array([session.stages[n].group for n in session.spans["stage"].tolist()])
    tiles = session.spans[np.isin(groups, TILING)]
    leaves = session.spans[np.isin(groups, ("frontend", "scoring", "search"))]
    ends = tiles["start_ns"] + tiles["duration_ns"]
    assert (tiles["start_ns"][1:] >= ends[:-1]).all()
    at = np.searchsorted(tiles["start_ns"], leaves["start_ns"], side="right") - 1
    assert (leaves["start_ns"] + leaves["duration_ns"] <= ends[at]).all()


QUICK = presets.load("gmm-quick").config
NET = settings.assign(presets.load("dnn").config, {"graph.vocabulary": 500, "graph.bigrams": 5000, "block": 4})


def quiet(what: str, fraction: float | None) -> None:
    """Progress that nobody sees."""


def never() -> bool:
    return False


def reasons(config: Config, stage: str, group: str, work: str = "") -> dict[str, str | None]:
    return {c.name: c.unavailable for c in perturb.changes(config, stage, group, work)}


@cache
def model() -> AcousticModel:
    return sphinx.load(sphinx.default_directory())


@cache
def speech() -> Array:
    """Features f32 [frames, 39] of the first three quarters of a second of the first bundled file."""
    sound = loading.load(min(presets.assets.path("speech").glob("*.flac")))
    features: Array = Mfcc(model().feat_params).features(sound.samples[:12_000])
    return features
