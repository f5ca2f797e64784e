"""The actions about scope and selection: choose, select, back and forward, bookmark, go to a bookmark, pin."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication

from app.model.conditions import Condition
from app.model.time_axis import CHANGE, LIVE, RANGE, WHOLE, Kind
from app.style.plain_text import TextQuestion, ask_text
from app.window.actions.actions import SUBMENU, Action, Registry

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "selection")

SCOPES: Final = tuple(f"scope.{kind}" for kind in (LIVE, CHANGE, RANGE, WHOLE))  # The choices of the chip

OF_SESSION: Final = "bookmarks."  # Ids of the actions about the bookmarks of a session begin so


def selection_actions(w: MainWindow) -> list[Action]:
    """The actions that are there whatever session is shown."""
    add, when = partial(Action, _group()), w.when
    axis, playhead, history = w.axis, w.playhead, w.history
    selects = partial(add, enabled=when.has_session)
    step, uses = partial(add, repeats=True), partial(add, enabled=when.has_selection)
    back, forward = map(Condition, (history.back_unavailable_reason, history.forward_unavailable_reason))
    from_here = partial(partial, playhead.select_from)
    drag = tr("Selects the range in view; a drag across a chart selects another")
    beside = tr("Breakdown, roofline and statistics show it next to what is selected later")
    note = tr("Keeps the range with a note next to the session; of a bookmark, changes the note")
    scopes: tuple[tuple[Kind, str, str], ...] = (
        (LIVE, tr("Scope: the last 3 s"), tr("All figures are of the newest frames")),
        (CHANGE, tr("Scope: since the last change"), tr("All figures are of the settings in force")),
        (RANGE, tr("Scope: a range, what is in view"), drag),
        (WHOLE, tr("Scope: the whole run"), tr("All figures are of everything up to the cursor")),
    )

    def is_scope(kind: Kind) -> bool:
        from app.model.scope import scope_of  # not before the window has been painted

        session, end = playhead.session, playhead.cursor_frame
        return session is not None and scope_of(session, end, axis.scope, axis.selected_frames).kind == kind

    return [
        *(
            selects(f"scope.{kind}", text, partial(axis.choose_scope, kind), help=help, checked=partial(is_scope, kind))
            for kind, text, help in scopes
        ),
        selects("view.select", tr("Select this utterance"), playhead.select_utterance, "U"),
        selects("view.from", tr("Select from the cursor on"), from_here(True), "I"),
        selects("view.to", tr("Select up to the cursor"), from_here(False), "O"),
        step("view.back", tr("Back: selection, range, stage"), history.back, "Alt+Left", back),
        step("view.forward", tr("Forward: selection, range, stage"), history.forward, "Alt+Right", forward),
        uses("view.pin", tr("Pin the selection as baseline"), lambda: axis.pin(axis.selected), "Shift+B", help=beside),
        add("view.unpin", tr("Unpin the baseline"), lambda: axis.pin(None), enabled=when.has_baseline),
        uses("bookmark.add", tr("Bookmark the selection…"), partial(ask_note, w), "Ctrl+B", help=note),
    ]


def register_bookmarks(actions: Registry, w: MainWindow) -> None:
    """Register the actions about the bookmarks of the session shown, in place of those that were."""
    add, can = partial(Action, _group()), Condition(w.bookmarks.delete_unavailable_reason)
    made = [add(f"{OF_SESSION}delete", tr("Delete this bookmark"), w.bookmarks.delete, enabled=can)]
    for number, one in enumerate(w.bookmarks.all, start=1):
        text = tr("Go to bookmark: {0}").format(one.note)
        made.append(add(f"{OF_SESSION}go.{number}", text, partial(w.bookmarks.go_to, one)))
    actions.replace(OF_SESSION, made)


def ask_note(w: MainWindow) -> TextQuestion | None:
    frames, known = w.axis.selected_frames, w.bookmarks.selected
    if frames is None:
        return None
    return ask_text(w, tr("Bookmark"), tr("Note"), known.note if known else "", partial(w.bookmarks.add, frames))


def _group() -> str:
    return f"{tr('View')}{SUBMENU}{tr('Selection')}"
