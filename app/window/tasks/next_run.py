"""What the next run decodes, and where: its audio as a list, a recording from the microphone, another machine."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6 import QtWidgets
from PySide6.QtCore import QCoreApplication, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut

from app.layout import REST, lay_out, wrapped
from app.model import audio_choice
from app.model.audio_choice import AudioChoice
from app.model.runs import Elsewhere
from app.model.sound import LONGEST_RECORDING_S, SILENCE, MicrophoneRecording, SoundError, inputs
from app.style.plain_text import Button, Label, Wrapped, describe, displayable, set_tip
from app.widgets import ChoiceBox
from app.window.tasks.page import FormPage
from profiler.errors import BadInput
from profiler.files.paths import sessions_dir
from profiler.plain import clock
from profiler.process import limits
from profiler.remote.link import ssh

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "NextRun")

PATH = Qt.ItemDataRole.UserRole


class PlaylistPage(FormPage):
    """A list that can be reordered, added to and removed from."""

    def __init__(self, w: MainWindow) -> None:
        super().__init__(tr("Audio of the next run"), tr("Use this list"), w)
        self._w, self._before = w, w.runs.next.audio
        self.list = QtWidgets.QListWidget()
        describe(self.list, self.tr("Audio of the next run"))
        self.list.setDragDropMode(QtWidgets.QAbstractItemView.DragDropMode.InternalMove)
        self.list.setSelectionMode(QtWidgets.QAbstractItemView.SelectionMode.ExtendedSelection)
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setSpacing(2)
        files = Button(self.tr("Add files…"), lambda: self.add(self._w.files.pick_audio()))
        folder = Button(self.tr("Add a folder…"), lambda: self.add(self._w.files.pick_folder()))
        self.up = Button(self.tr("Up"), partial(self._move, -1))
        self.down = Button(self.tr("Down"), partial(self._move, 1))
        self.remove = Button(self.tr("Remove"), self._remove)
        for button, key in ((self.up, "Alt+Up"), (self.down, "Alt+Down"), (self.remove, "Del")):
            sequence = QKeySequence(key)
            QShortcut(sequence, self.list, button.click, context=Qt.ShortcutContext.WidgetShortcut)
            set_tip(button, sequence.toString(QKeySequence.SequenceFormat.NativeText))
        beside = lay_out(QtWidgets.QVBoxLayout(), files, folder, 8, self.up, self.down, self.remove, REST)
        self.about = wrapped(self.tr("Files are decoded in this order; those of a folder by name."))
        lay_out(self.column, (lay_out(QtWidgets.QHBoxLayout(), (self.list, 1), beside), 1), self.about, self.buttons)
        self.list.itemSelectionChanged.connect(self._refresh)
        self.list.model().rowsMoved.connect(self._refresh)
        self.add(() if self._before is None else self._before.paths)
        self.list.setCurrentRow(0)

    def paths(self) -> list[str]:
        return [self.list.item(row).data(PATH) for row in range(self.list.count())]

    def add(self, paths: Sequence[str | Path]) -> None:
        known = set(self.paths())
        for path in dict.fromkeys(map(str, paths)):
            if path in known:
                continue
            name = os.path.basename(path.rstrip(os.sep)) or path
            item = QtWidgets.QListWidgetItem(displayable(f"{name}{os.sep}" if os.path.isdir(path) else name))
            item.setData(PATH, path)
            set_tip(item, path)
            self.list.addItem(item)
        self._refresh()

    def _rows(self) -> list[int]:
        return sorted(index.row() for index in self.list.selectedIndexes())

    def _move(self, step: int) -> None:
        rows = self._rows()
        for row in rows if step < 0 else reversed(rows):
            item = self.list.takeItem(row)
            self.list.insertItem(row + step, item)
        for row in rows:
            self.list.item(row + step).setSelected(True)
        self.list.scrollToItem(self.list.item(rows[0] + step))
        self._refresh()

    def _remove(self) -> None:
        for row in reversed(self._rows()):
            self.list.takeItem(row)
        self._refresh()

    def _refresh(self, *_: object) -> None:
        rows, last = self._rows(), self.list.count() - 1
        self.up.setEnabled(bool(rows) and rows[0] > 0)
        self.down.setEnabled(bool(rows) and rows[-1] < last)
        self.remove.setEnabled(bool(rows))
        self.take.setEnabled(last >= 0)

    def accept(self) -> None:
        """Choose the list for the next run; if it cannot be decoded, say why."""
        paths, before = self.paths(), self._before
        try:
            choice = audio_choice.chosen(paths)
        except ValueError as error:
            self.about.setText(str(error))
            return
        if before is not None and before.transcripts is not None and not set(paths).isdisjoint(before.paths):
            choice = replace(choice, transcripts=before.transcripts, found=before.found)
        self._w.take_audio(choice)
        self.close()


def playlist(w: MainWindow) -> None:
    w.bench.ask(PlaylistPage, lambda: PlaylistPage(w))


QUIETEST_DB: Final = -60  # Left end of the level meter
CLIPPED: Final = 0.99


class MicrophonePage(FormPage):
    """Chooses a device, shows its level, and records; `decode` takes the finished file."""

    def __init__(
        self, devices: list[tuple[str, int]], decode: Callable[[Path], object], parent: QtWidgets.QWidget
    ) -> None:
        super().__init__(tr("Record from the microphone"), tr("Record"), parent)
        self._decode = decode
        self._recording: MicrophoneRecording | None = None
        self.device = ChoiceBox(self.tr("Microphone"), list(devices))
        self.state = Wrapped(
            self.tr("Nothing is recorded yet; a recording lasts {0} at most.").format(clock(LONGEST_RECORDING_S))
        )
        self.level = QtWidgets.QProgressBar(minimum=QUIETEST_DB, maximum=0, value=QUIETEST_DB, textVisible=False)
        describe(self.level, self.tr("Level"))
        lay_out(self.column, self.device, self.state, self.level, self.buttons, REST, spacing=10)
        self._timer = QTimer(self, interval=50)
        self._timer.timeout.connect(self._drain)

    def accept(self) -> None:
        if self._recording is not None:
            self._finish()
            return
        try:
            folder = sessions_dir() / "recordings"
            folder.mkdir(exist_ok=True)
            path = folder / f"{time.strftime('%Y-%m-%d-%H%M%S')}.wav"
            self._recording = MicrophoneRecording(path, int(self.device.currentData()))
        except (SoundError, OSError) as error:
            self.state.setText(limits.sentence(error))
            return
        self.device.setEnabled(False)
        self.take.setText(self.tr("Stop and decode"))
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

    def _take_recording(self) -> MicrophoneRecording | None:
        self._timer.stop()
        recording, self._recording = self._recording, None
        return recording

    def _finish(self) -> None:
        if (recording := self._take_recording()) is not None:
            recording.finish()
            self.close()
            self._decode(recording.path)

    def closeEvent(self, event: QCloseEvent) -> None:
        """However it is closed: a recording that was not finished is removed."""
        super().closeEvent(event)
        if (recording := self._take_recording()) is not None:
            recording.give_up()


def microphone(w: MainWindow) -> None:
    try:
        devices = inputs()
    except SoundError as error:
        w.notices.error(str(error))
        return

    def decode(path: Path) -> None:
        if w.files.take_audio([path]):
            w.pipeline.hear()
            w.runs.start()

    w.bench.ask(MicrophonePage, lambda: MicrophonePage(devices, decode, w))


class RunOnPage(FormPage):
    """Asks for a machine; `elsewhere` is what was entered."""

    def __init__(self, w: MainWindow) -> None:
        super().__init__(tr("Run on another machine"), tr("Run"), w)
        self._runs = w.runs
        self.host = QtWidgets.QComboBox(editable=True)
        self.host.addItems(w.runs.next.hosts())
        self.audio, self.transcripts = QtWidgets.QLineEdit(), QtWidgets.QLineEdit()
        self.audio.setPlaceholderText(tr("empty: the bundled voices"))
        form = QtWidgets.QFormLayout(verticalSpacing=10)
        titles = tr("Machine"), tr("Audio"), tr("Transcripts")
        for title, field in zip(titles, (self.host, self.audio, self.transcripts), strict=True):
            describe(field, title)
            label = Label(title)
            label.setMinimumHeight(field.sizeHint().height())  # next to the middle of its field
            form.addRow(label, field)
        self.remark = Wrapped("")
        about = tr(
            "Runs with the settings of the form where asrscope is installed too, and records the session here. Audio, "
            "transcripts and the folders that settings name are files of that machine."
        )
        lay_out(self.column, Wrapped(about), form, self.remark, self.buttons, REST, spacing=10)
        self.host.editTextChanged.connect(lambda _: self._check())
        self._check()

    def accept(self) -> None:
        elsewhere = self.elsewhere
        self.close()
        self._runs.start(elsewhere=elsewhere)

    @property
    def elsewhere(self) -> Elsewhere:
        audio, transcripts = self.audio.text().strip(), self.transcripts.text().strip()
        choice = AudioChoice((audio,) if audio else (), transcripts or None, bundled=not audio)
        return Elsewhere(self.host.currentText().strip(), choice)

    def _check(self) -> None:
        try:
            ssh(self.elsewhere.host)
            text = ""
        except BadInput:
            text = tr("Enter a name that ssh knows, such as gpu or me@gpu.example.org.")
        self.remark.setText(text)
        self.take.setEnabled(not text)


def run_on(w: MainWindow) -> None:
    w.bench.ask(RunOnPage, lambda: RunOnPage(w))
