"""The line at the bottom: the cost of the recorder itself, the roofs of the machine, memory, keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from app.layout import NONE, REST, lay_out, named, styled
from app.model.hints import Hints
from app.model.pace import single_shot
from app.model.provenance import device_names
from app.style.icons import ButtonIcon
from app.style.plain_text import Button, Elided, describe, set_tip
from app.widgets import THIN_SPACE
from profiler.machine.roofs.table import DRIFT_TOLD, sound_drift
from profiler.plain import one_line

if TYPE_CHECKING:
    from app.model.playhead import Snapshot


MESSAGE_MS = 8000  # A message stays for so long
MEGABYTE = 1e6
RSS, CPU = "process.rss_bytes", "process.cpu_percent"  # Samples of the worker process that are shown here


class StatusLine(QFrame):
    """Three texts, a reminder of the keys among them; a hint or a message takes the place of the middle one."""

    def __init__(self, keys: str, hints: Hints) -> None:
        super().__init__()
        named(self, "status-line", bar=True)
        self.cost, self.machine, self.message, self.keys = Elided(), Elided(), Elided(), Elided()
        self.keys.set_full(keys, keys.partition(" · ")[0])
        for label, align in (
            (self.cost, Qt.AlignmentFlag.AlignLeft),
            (self.machine, Qt.AlignmentFlag.AlignHCenter),
            (self.message, Qt.AlignmentFlag.AlignHCenter),
            (self.keys, Qt.AlignmentFlag.AlignRight),
        ):
            styled(label, 0.92, strong=label is self.message).setAlignment(align | Qt.AlignmentFlag.AlignVCenter)
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._hints = hints
        self.hint, self.hint_text = named(QWidget(), "hint-strip"), styled(Elided(), 0.92, strong=True)
        self.away = named(Button("", hints.dismiss), "hint-away")
        self.away.setFixedSize(18, 18)
        describe(self.away, self.tr("Dismiss the hint"))
        set_tip(self.away, self.tr("Dismiss the hint"))
        ButtonIcon(self.away, "close", "muted")
        lay_out(QHBoxLayout(self.hint), REST, self.hint_text, self.away, REST, spacing=6, margins=NONE)
        hints.changed.connect(self._show_middle)
        self._over = single_shot(self, MESSAGE_MS, lambda: self.show_message(""))
        self._show_middle()
        parts = ((self.cost, 4), (self.machine, 5), (self.hint, 5), (self.message, 5), (self.keys, 2))
        lay_out(QHBoxLayout(self), *parts, spacing=24, margins=(16, 6, 16, 6))
        self.show_snapshot(None)

    def show_message(self, text: str) -> None:
        """Say what came of an action, for a while; an empty text ends that."""
        self.message.set_full(text)
        describe(self.message, text)
        if text:
            self._over.start()
        else:
            self._over.stop()
        self._show_middle()

    def _show_middle(self) -> None:
        """The message, else the hint, else what is known of the machine."""
        said, hint = bool(self.message.full), self._hints.current
        if hint is not None:
            text = self.tr("Hint {0} of {1}: {2}")
            self.hint_text.set_full(text.format(self._hints.number(hint), len(self._hints.all), self._hints.text))
        self.message.setVisible(said)
        self.hint.setVisible(hint is not None and not said)
        self.machine.setVisible(hint is None and not said)

    def show_snapshot(self, snapshot: Snapshot | None) -> None:
        if snapshot is None:
            self.show_message("")
            self.cost.set_full(self.tr("no session open"))
            self.machine.set_full("")
            return
        self.cost.set_full(*self._cost_texts(snapshot))
        parts = self._machine_texts(snapshot) or [""]
        # Where there is no room, the last goes first.
        self.machine.set_full(*(" · ".join(parts[:count]) for count in range(len(parts), 0, -1)))

    def _cost_texts(self, snapshot: Snapshot) -> tuple[str, str]:
        """All of it, and what matters most: the share and what was lost."""
        from profiler.analysis.own_cost import recorder_cost

        cost = recorder_cost(snapshot.session, snapshot.track)
        parts = []
        if cost.perturbation is not None:
            parts.append(self.tr("recorder {0} % of the run").format(f"{100 * cost.perturbation:.2g}"))
        if cost.ns_per_span is not None:
            parts.append(self.tr("{0} ns per span").format(f"{cost.ns_per_span:.0f}"))
        count = f"{cost.spans:,}".replace(",", THIN_SPACE)
        parts.append(self.tr("1 span") if cost.spans == 1 else self.tr("{0} spans").format(count))
        return " · ".join((*parts, *cost.losses)), " · ".join((*parts[:1], *cost.losses))

    def _machine_texts(self, snapshot: Snapshot) -> list[str]:
        session = snapshot.session
        parts = [one_line(name, 80) for name in device_names(session)]
        moved = [abs(v) for v in sound_drift(session.meta.get("drift")).values()]
        if not session.calibration:
            parts.append(self.tr("roofs not measured: compute and memory cannot be separated"))
        elif moved and max(moved) > DRIFT_TOLD:
            text = self.tr("roofs changed by up to {0} %: compute and memory may be off by as much")
            parts.append(text.format(f"{100 * max(moved):.0f}"))
        else:
            parts.append(self.tr("roofs as recorded"))
        for name, text, scale in ((RSS, self.tr("memory {0} MB"), MEGABYTE), (CPU, self.tr("CPU {0} %"), 1.0)):
            if name in session.sample_names:
                values = session.samples(name)[1]
                if len(values):
                    parts.append(text.format(f"{values[-1] / scale:.0f}"))
        return parts
