"""Run on…: the machine, as ssh knows it, and what to decode there; the settings are those of the form."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QComboBox, QDialog, QFormLayout, QHBoxLayout, QLineEdit, QVBoxLayout

from app.layout import REST, lay_out
from app.model.next_run import Elsewhere
from app.style.plain_text import Button, Label, Wrapped, describe, set_title
from app.window.tasks.workbench import Workbench
from profiler.errors import BadInput
from profiler.remote.link import ssh

tr = partial(QCoreApplication.translate, "RunOn")

WIDTH: Final = 480


class RunOnDialog(QDialog):
    """Asks for a machine; `elsewhere` is what was entered."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        set_title(self, tr("Run on another machine"))
        self.host = QComboBox()
        self.host.setEditable(True)
        self.host.addItems(bench.runs.next.hosts())
        self.audio, self.transcripts = QLineEdit(), QLineEdit()
        self.audio.setPlaceholderText(tr("empty: the bundled voices"))
        form = QFormLayout()
        form.setVerticalSpacing(10)
        titles = tr("Machine"), tr("Audio"), tr("Transcripts")
        for title, field in zip(titles, (self.host, self.audio, self.transcripts), strict=True):
            describe(field, title)
            label = Label(title)
            label.setMinimumHeight(field.sizeHint().height())  # next to the middle of its field
            form.addRow(label, field)
        self.remark = Wrapped("")
        self.begin = Button(tr("Run"))
        self.begin.setProperty("primary", True)
        self.begin.setDefault(True)
        self.begin.clicked.connect(lambda _=False: self.accept())
        self.accepted.connect(lambda: bench.runs.start_on(self.elsewhere))
        cancel = Button(tr("Cancel"))
        cancel.clicked.connect(self.reject)
        about = tr(
            "Runs with the settings of the form where asrscope is installed too, and records the session here. Audio, "
            "transcripts and the folders that settings name are files of that machine."
        )
        column = lay_out(
            QVBoxLayout(self),
            Wrapped(about),
            form,
            self.remark,
            REST,
            lay_out(QHBoxLayout(), REST, cancel, self.begin),
            spacing=10,
        )
        self.host.editTextChanged.connect(lambda _: self._check())
        self._check()
        self.resize(WIDTH, column.totalHeightForWidth(WIDTH))
        self.host.setFocus()

    @property
    def elsewhere(self) -> Elsewhere:
        audio, transcripts = self.audio.text().strip(), self.transcripts.text().strip()
        return Elsewhere(self.host.currentText().strip(), (audio,) if audio else (), transcripts or None)

    def _check(self) -> None:
        """Say what to enter as long as the name cannot be one."""
        try:
            ssh(self.elsewhere.host)
            text = ""
        except BadInput:
            text = tr("Enter a name that ssh knows, such as gpu or me@gpu.example.org.")
        self.remark.setText(text)
        self.begin.setEnabled(not text)


def begin(bench: Workbench) -> None:
    RunOnDialog(bench).open()
