"""Record from a microphone, with its level, and decode the recording."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QDialog, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from app.layout import REST, lay_out
from app.model.microphone import LONGEST_S, SILENCE, Recording, inputs
from app.model.sound import SoundError
from app.style.plain_text import Button, Wrapped, describe, set_title
from app.widgets import ChoiceBox
from app.window.tasks.workbench import Workbench
from profiler.files.paths import sessions_dir
from profiler.plain import clock
from profiler.process import limits

DRAIN_MS: Final = 50
QUIETEST_DB: Final = -60
"""Left end of the level meter."""

CLIPPED: Final = 0.99


class MicrophoneDialog(QDialog):
    """Chooses a device, shows its level, and records; `decode` takes the finished file."""

    def __init__(self, devices: list[tuple[str, int]], decode: Callable[[Path], object], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        set_title(self, self.tr("Record from the microphone"))
        self.resize(460, 0)
        self._decode = decode
        self._recording: Recording | None = None
        self.device = ChoiceBox(self.tr("Microphone"), list(devices))
        self.state = Wrapped(
            self.tr("Nothing is recorded yet; a recording lasts {0} at most.").format(clock(LONGEST_S))
        )
        self.level = QProgressBar()
        self.level.setRange(QUIETEST_DB, 0)
        self.level.setTextVisible(False)
        self.level.setValue(QUIETEST_DB)
        describe(self.level, self.tr("Level"))
        self.record = Button(self.tr("Record"))
        self.record.clicked.connect(lambda _=False: self._press())
        self.end = Button(self.tr("Cancel"))
        self.end.clicked.connect(self.close)
        buttons = lay_out(QHBoxLayout(), REST, self.record, self.end)
        lay_out(QVBoxLayout(self), self.device, self.state, self.level, buttons, spacing=10)
        self._timer = QTimer(self)
        self._timer.setInterval(DRAIN_MS)
        self._timer.timeout.connect(self._drain)
        self.finished.connect(lambda _: self._give_up())

    def _press(self) -> None:
        """Begin to record, or finish and decode."""
        if self._recording is not None:
            self._finish()
            return
        try:
            folder = sessions_dir() / "recordings"
            folder.mkdir(exist_ok=True)
            path = folder / f"{time.strftime('%Y-%m-%d-%H%M%S')}.wav"
            self._recording = Recording(path, int(self.device.currentData()))
        except (SoundError, OSError) as error:
            self.state.setText(limits.sentence(error))
            return
        self.device.setEnabled(False)
        self.record.setText(self.tr("Stop and decode"))
        self._timer.start()

    def _drain(self) -> None:
        recording = self._recording
        if recording is None:
            return
        if not recording.drain():
            self._finish()
            return
        self.level.setValue(max(QUIETEST_DB, round(20 * math.log10(max(recording.peak, 1e-6)))))
        parts = [self.tr("Recording {0}").format(clock(recording.seconds))]
        if recording.highest < SILENCE and recording.seconds >= 1.0:
            parts.append(self.tr("only silence so far"))
        elif recording.peak >= CLIPPED:
            parts.append(self.tr("too loud: clipped"))
        if recording.gaps:
            parts.append(self.tr("sound was lost {0}×").format(recording.gaps))
        self.state.setText(" · ".join(parts))

    def _finish(self) -> None:
        recording, self._recording = self._recording, None
        self._timer.stop()
        if recording is not None:
            recording.finish()
            self.accept()
            self._decode(recording.path)

    def _give_up(self) -> None:
        """However it is closed, by Escape too: a recording that was not finished is removed."""
        self._timer.stop()
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.give_up()


def begin(bench: Workbench) -> None:
    """Show the dialog; where nothing can record, the window says why."""
    try:
        devices = inputs()
    except SoundError as error:
        bench.notices.error(str(error))
        return

    def decode(path: Path) -> None:
        if bench.files.take_audio([path]):
            bench.pipeline.hear()
            bench.runs.start()

    MicrophoneDialog(devices, decode, bench.window).open()
