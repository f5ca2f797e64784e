"""The line of the form that says whose settings it shows: a run's, or those at the cursor of a recording."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.layout import lay_out
from app.style.plain_text import Button, set_tip
from app.style.theme import font
from app.widgets import Elided

HEIGHT = 24  # Pixels, whether there is a choice or not: the settings below do not jump


class Which(QWidget):
    """Says whose settings the form shows; beside a recording, a choice between its own and the next run's."""

    asked = Signal(bool)
    """Whether the settings of the next run are wanted, or those at the cursor of the recording."""

    def __init__(self) -> None:
        super().__init__()
        self.said = Elided()
        self.said.setObjectName("muted")
        self.recorded = Button(self.tr("At the cursor"))
        self.next = Button(self.tr("Next run"))
        set_tip(self.recorded, self.tr("The settings in force at the cursor of the recording"))
        set_tip(self.next, self.tr("The settings of the next run, to be changed"))
        row = lay_out(QHBoxLayout(self), (self.said, 1), spacing=0, margins=(0, 0, 8, 0))
        for button, wanted in ((self.recorded, False), (self.next, True)):
            button.setObjectName("segment")
            button.setCheckable(True)
            button.setFont(font(0.92))
            button.clicked.connect(lambda _=False, wanted=wanted: self.asked.emit(wanted))
            row.addWidget(button, 1)
        self.setFixedHeight(HEIGHT)
        self.show_which(True, False, False)

    def show_which(self, editing: bool, offered: bool, running: bool) -> None:
        """Show the choice where there is one."""
        text = self.tr("settings of this run") if running else self.tr("settings of the next run")
        self.said.set_full(text)
        self.said.setVisible(not offered)
        for button, chosen in ((self.recorded, not editing), (self.next, editing)):
            button.setVisible(offered)
            button.setChecked(chosen)
