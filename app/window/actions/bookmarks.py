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

GO: Final = "bookmark.go."  # Ids of the actions that go to one begin so


def bookmark_actions(w: MainWindow) -> list[Action]:
    """The actions about what is selected."""
    add, bookmarks = partial(Action, group=_group()), w.bookmarks
    return [
        add(
            "bookmark.add",
            tr("Bookmark this selection…"),
            partial(ask, w),
            keys=("Ctrl+B",),
            enabled=w.when.has_selection,
            help=tr("Keeps the range with a note next to the session; of a bookmark, changes the note"),
        ),
        add(
            "bookmark.delete",
            tr("Delete this bookmark"),
            bookmarks.delete,
            enabled=Condition(bookmarks.delete_unavailable_reason),
        ),
    ]


def register_bookmarks(actions: Registry, w: MainWindow) -> None:
    """Register an action for each bookmark of the session shown, in place of those that were."""
    for old in [action.id for action in actions if action.id.startswith(GO)]:
        actions.remove(old)
    for number, one in enumerate(w.bookmarks.all, start=1):
        text = tr("Go to bookmark: {0}").format(one.note)
        actions.add(Action(f"{GO}{number}", text, partial(w.bookmarks.go_to, one), _group()))


def ask(w: MainWindow) -> TextQuestion | None:
    """Ask for the note of what is selected now."""
    frames, known = w.axis.selected_frames, w.bookmarks.selected
    if frames is None:
        return None
    dialog = text_question(w, tr("Bookmark"), tr("Note"), "" if known is None else known.note)
    dialog.textValueSelected.connect(partial(w.bookmarks.add, frames))
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()
    return dialog


def _group() -> str:
    return f"{tr('View')}{SUBMENU}{tr('Bookmarks')}"
