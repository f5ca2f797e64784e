"""The actions of bookmarks: bookmark the selection, go to a bookmark, delete one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication

from app.model.conditions import Condition
from app.style.plain_text import TextQuestion, text_question
from app.window.actions.actions import SUBMENU, Action, Registry

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "bookmarks")

OF_SESSION: Final = "bookmarks."  # Ids of the actions about the bookmarks of a session begin so


def register_bookmarks(actions: Registry, w: MainWindow) -> None:
    """Register the actions about the bookmarks of the session shown, in place of those that were."""
    group = f"{tr('View')}{SUBMENU}{tr('Bookmarks')}"
    for old in [action.id for action in actions if action.id.startswith(OF_SESSION)]:
        actions.remove(old)
    for number, one in enumerate(w.bookmarks.all, start=1):
        text = tr("Go to bookmark: {0}").format(one.note)
        actions.add(Action(f"{OF_SESSION}go.{number}", text, partial(w.bookmarks.go_to, one), group))
    can = Condition(w.bookmarks.delete_unavailable_reason)
    actions.add(Action(f"{OF_SESSION}delete", tr("Delete this bookmark"), w.bookmarks.delete, group, enabled=can))


def ask_note(w: MainWindow) -> TextQuestion | None:
    """Ask for the note of what is selected now."""
    frames, known = w.axis.selected_frames, w.bookmarks.selected
    if frames is None:
        return None
    dialog = text_question(w, tr("Bookmark"), tr("Note"), "" if known is None else known.note)
    dialog.textValueSelected.connect(partial(w.bookmarks.add, frames))
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()
    return dialog
