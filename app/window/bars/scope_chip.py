"""The chip that says what every figure of the desk is of: a click offers the four kinds of scope, × goes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from app.layout import muted, named, new_grid, styled
from app.style.plain_text import ToolButton, describe, new_menu, set_tip
from app.widgets import DropButton

if TYPE_CHECKING:
    from app.model.scope import Scope

ROOM = 26  # Pixels of the button for its border and the arrow of its list

WIDTH = 216


class ScopeChip(QWidget):
    """Shows a scope; `choices`: the actions that choose one, in the order of the menu."""

    left = Signal()  # Somebody wants the usual one again

    def __init__(self, choices: Sequence[QAction]) -> None:
        super().__init__()
        self._scope: Scope | None = None
        self._direction = 0
        self._menu = new_menu(self.tr("Scope"), self)
        self._menu.addActions(list(choices))
        self.button = named(styled(DropButton(ROOM), 0.95, strong=True), "scope-chip")
        self.button.clicked.connect(lambda _=False: self._menu.popup(self.mapToGlobal(self.rect().bottomLeft())))
        self.away = named(ToolButton(), "table-toggle")
        self.away.setText("×")
        describe(self.away, self.tr("Back to the usual scope"))
        set_tip(self.away, self.tr("Back to the usual scope (Esc)"))
        self.away.clicked.connect(lambda _=False: self.left.emit())
        grid = new_grid(self, 1, 1)
        grid.addWidget(muted(self.tr("scope of all figures"), 0.85), 0, 0, 1, 2)
        grid.addWidget(self.button, 1, 0)
        grid.addWidget(self.away, 1, 1)
        grid.setColumnStretch(0, 1)
        self.setMaximumWidth(WIDTH)
        self.show_scope(None, False)

    def sizeHint(self) -> QSize:
        """As wide as it may be: it must not move because its text changed."""
        return QSize(WIDTH, super().sizeHint().height())

    def show_scope(self, scope: Scope | None, chosen: bool) -> None:
        """Show a scope, or that there is none; `chosen`: by somebody, who can go back."""
        self._scope = scope
        self.button.setEnabled(scope is not None)
        self.away.setVisible(chosen)
        self._show()

    def show_direction(self, direction: int) -> None:
        """Say that the scope lies left (−1) or right (1) of what is in view, or (0) within it."""
        if direction != self._direction:
            self._direction = direction
            self._show()

    def _show(self) -> None:
        if self._scope is None:
            self.button.show_text("–")
            describe(self.button, self.tr("Scope: no session"))
            return
        text = self._scope.text
        self.button.show_text(text, "◂ " if self._direction < 0 else "", " ▸" if self._direction > 0 else "")
        frames = self.tr("{0} frames of 10 ms").format(self._scope.frames)
        tips = [self.tr("All figures are of this: {0}").format(text), frames]
        if self._direction:
            tips.append(self.tr("It lies outside of what is in view."))
        set_tip(self.button, "\n".join(tips))
        describe(self.button, self.tr("Scope: {0}").format(text))
