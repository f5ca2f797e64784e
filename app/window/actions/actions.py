"""Every action of the window, registered once: id, text, keys, when it is available, what it does.

Menus, buttons, the command palette and the key sheet are built from this registry, so none of
them can have an action that another lacks.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.model.conditions import Condition
from app.style.plain_text import Button, describe, new_action, set_tip

WHY_NOT = "why-not"  # Property of a `QAction`: why it is unavailable, empty if it is available
SUBMENU = " ▸ "  # Stands in a group between a menu and the submenu in it
ALWAYS = Condition(lambda: None)  # When an action that is always available is


@dataclass(frozen=True)
class Action:
    """One thing a user can do. ``text`` carries no ellipsis logic and no ``&``: it is plain.

    ``shortcuts``: keys, with a space between them. ``enabled`` says why it is unavailable, if it is. ``repeats``:
    whether it is done again while its key is held down.
    """

    group: str
    id: str
    text: str
    handler: Callable[[], object]
    shortcuts: str = ""
    enabled: Condition = ALWAYS
    help: str = ""
    checked: Callable[[], bool] | None = None
    repeats: bool = False

    @property
    def keys(self) -> list[str]:
        return self.shortcuts.split()


class Registry(QObject):
    """Holds the actions and their ``QAction`` counterparts on the window that owns them."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._actions: dict[str, Action] = {}
        self._qactions: dict[str, QAction] = {}

    def add(self, action: Action) -> QAction:
        """Register ``action``; a duplicate id or key is a programming error."""
        if action.id in self._actions:
            raise ValueError(f"action {action.id!r} is registered twice")
        taken = {key: other.id for other in self._actions.values() for key in other.keys}
        for key in action.keys:
            if key in taken:
                raise ValueError(f"key {key} of {action.id!r} belongs to {taken[key]!r}")
        made = new_action(action.text, self._window)
        made.setObjectName(f"action-{action.id}")
        made.setShortcuts([QKeySequence(key) for key in action.keys])
        made.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        made.setAutoRepeat(action.repeats)
        set_tip(made, action.help or action.text)
        made.setCheckable(action.checked is not None)
        made.triggered.connect(lambda _=False, run=action.handler: run())
        self._window.addAction(made)
        self._actions[action.id] = action
        self._qactions[action.id] = made
        return made

    def replace(self, prefix: str, actions: Iterable[Action]) -> None:
        """Register actions in place of those whose id begins with `prefix`."""
        for old in [action_id for action_id in self._actions if action_id.startswith(prefix)]:
            del self._actions[old]
            made = self._qactions.pop(old)
            self._window.removeAction(made)
            made.deleteLater()
        for action in actions:
            self.add(action)

    def __iter__(self) -> Iterator[Action]:
        return iter(self._actions.values())

    def __getitem__(self, action_id: str) -> QAction:
        return self._qactions[action_id]

    def groups(self) -> dict[str, list[Action]]:
        found: dict[str, list[Action]] = {}
        for action in self:
            found.setdefault(action.group, []).append(action)
        return found

    def unavailable_reason(self, action_id: str) -> str | None:
        return self._actions[action_id].enabled.unavailable_reason()

    def trigger(self, action_id: str) -> bool:
        action = self._actions[action_id]
        if not action.enabled():
            return False
        action.handler()
        return True

    def refresh(self) -> None:
        for key, action in self._actions.items():
            made = self._qactions[key]
            why = action.enabled.unavailable_reason() or ""
            if made.property(WHY_NOT) != why:
                made.setEnabled(not why)
                made.setProperty(WHY_NOT, why)
                set_tip(made, why or action.help or action.text)
            if action.checked is not None and made.isChecked() != (checked := action.checked()):
                made.setChecked(checked)


def key_text(key: str) -> str:
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)


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
