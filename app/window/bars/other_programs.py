"""The banner that says how much of the processor other programs took, and has the switch that hides them in charts."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QHBoxLayout

from app.layout import REST, lay_out, muted
from app.style.plain_text import Label, describe
from app.style.theme import font
from app.widgets import Switch

SHOWN_FROM, SHOWN_TO = 0.2, 0.15
"""Share of the wall time from which the banner is shown, and below which it is hidden again."""


class OtherPrograms(QFrame):
    """One line with a switch."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("other-programs")
        self.setProperty("bar", True)
        self.taken = Label()
        self.taken.setFont(font(0.92, strong=True))
        self.switch = Switch(small=True)
        self.switch.setChecked(True)
        describe(self.switch, self.tr("Show the time of other programs in the charts"))
        about = muted(self.tr("All figures are without them; compare ratios only."), 0.92)
        shown = muted(self.tr("show them in the charts"), 0.92)
        shown.setBuddy(self.switch)
        parts = (self.taken, about, REST, shown, self.switch)
        lay_out(QHBoxLayout(self), *parts, spacing=12, margins=(14, 3, 16, 3))
        self.hide()

    def show_share(self, share: float) -> None:
        """Say what share of the wall time of the scope, 0…1, they took."""
        shown = share > (SHOWN_TO if not self.isHidden() else SHOWN_FROM)
        if shown:
            text = self.tr("Other programs took {0} % of the processor.").format(f"{100 * share:.0f}")
            if text != self.taken.text():
                self.taken.setText(text)
        if shown == self.isHidden():
            self.setVisible(shown)
