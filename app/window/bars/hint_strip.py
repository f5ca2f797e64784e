"""The strip that says what to try next, with a button to wave it away; no hint, no strip."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.layout import NONE, REST, lay_out
from app.model.hints import Hints
from app.style.icons import ButtonIcon
from app.style.plain_text import Button, describe, set_tip
from app.style.theme import font
from app.widgets import Elided


class HintStrip(QWidget):
    """One line of `hints`."""

    shown = Signal(bool)  # Whether there is a hint

    def __init__(self, hints: Hints) -> None:
        super().__init__()
        self.setObjectName("hint-strip")
        self._hints = hints
        self.text = Elided()
        self.text.setFont(font(0.92, strong=True))
        self.away = Button()
        self.away.setObjectName("hint-away")
        self.away.setFixedSize(18, 18)
        describe(self.away, self.tr("Dismiss the hint"))
        set_tip(self.away, self.tr("Dismiss the hint"))
        self.away.clicked.connect(lambda _=False: hints.dismiss())
        lay_out(QHBoxLayout(self), REST, self.text, self.away, REST, spacing=6, margins=NONE)
        hints.changed.connect(self.refresh)
        ButtonIcon(self.away, "close", "muted")
        self.refresh()

    def refresh(self) -> None:
        """Show the present hint."""
        hint = self._hints.current
        self.setVisible(hint is not None)
        self.shown.emit(hint is not None)
        if hint is not None:
            text = self.tr("Hint {0} of {1}: {2}")
            self.text.set_full(
                text.format(self._hints.number(hint), len(self._hints.all), self._hints.text)
            )
