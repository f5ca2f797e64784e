"""A button made from a registered action: it follows what the action says and whether it can be used."""

from __future__ import annotations

from PySide6.QtGui import QAction

from app.style.plain_text import Button, describe, set_tip
from app.window.actions.actions import WHY_NOT, key_text


class ActionButton(Button):
    """Triggers `action`; `text` stands on it, `name` is what a screen reader says (the action's text if not given)."""

    def __init__(self, action: QAction, text: str = "", name: str | None = None) -> None:
        super().__init__(text)
        self.action, self._name = action, name
        self.setCheckable(action.isCheckable())
        self.clicked.connect(lambda _=False: action.trigger())
        action.changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        action, keys = self.action, self.action.shortcut().toString()
        self.setEnabled(action.isEnabled())
        self.setChecked(action.isChecked())
        why = action.property(WHY_NOT) or ""
        describe(self, action.text() if self._name is None else self._name, description=why)
        said = f"{action.text()} ({key_text(keys)})" if keys else action.text()
        set_tip(self, f"{said}\n{why}" if why else said)
