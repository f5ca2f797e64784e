"""The actions of the views: open and close, go to one, give one all the room; and the layouts that place them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication

from app.views import VIEWS
from app.window.actions.actions import SUBMENU, Action, Registry
from app.window.layouts import EXPLORE, PRESENT

if TYPE_CHECKING:
    from app.window.docks import Docks
    from app.window.main_window import MainWindow

WITH_KEY: Final = 9
"""Number of views that have a digit of their own."""

LAYOUT: Final = "layout."
"""Ids of actions about layouts begin so."""


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("views", text)


def view_actions(w: MainWindow) -> list[Action]:
    """The actions about views, which exist once the desk does."""
    return [*_going(w), *_panels(w)]


def _going(w: MainWindow) -> list[Action]:
    def go(view_id: str) -> None:
        w.show_desk()
        w.desk.docks.go_to(view_id)

    return [
        Action(
            f"go.{view_id}",
            tr("Go to {0}").format(tr(entry.load().title)),
            _in_view(tr("Go to")),
            partial(go, view_id),
            (f"Ctrl+{number}",) if number <= WITH_KEY else (),
            help=tr("Opens the view if it is closed, and brings it to the front"),
        )
        for number, (view_id, entry) in enumerate(VIEWS.items(), start=1)
    ]


def _panels(w: MainWindow) -> list[Action]:
    group = _in_view(tr("Panels"))

    def docks() -> Docks:
        return w.desk.docks

    def is_open(view_id: str) -> bool:
        return docks().is_open(view_id)

    def toggle(view_id: str) -> None:
        docks().open(view_id, not is_open(view_id))

    return [
        Action(
            "panel.form",
            tr("Pipeline"),
            group,
            lambda: w.desk.form.setVisible(w.desk.form.isHidden()),
            ("Ctrl+0",),
            checked=lambda: not w.desk.form.isHidden(),
        ),
        *(
            Action(
                f"panel.{view_id}",
                tr(entry.load().title),
                group,
                partial(toggle, view_id),
                checked=partial(is_open, view_id),
            )
            for view_id, entry in VIEWS.items()
        ),
        Action(
            "panel.alone",
            tr("Only this view"),
            group,
            lambda: docks().toggle_alone(),
            ("Ctrl+Return",),
            checked=lambda: docks().is_alone,
            help=tr("The view with the keyboard takes all the room, until Esc"),
        ),
        Action(
            "panel.float",
            tr("Float this view, or dock it again"),
            group,
            lambda: docks().float_or_dock(),
        ),
        Action(
            "panel.close",
            tr("Close this view"),
            group,
            lambda: docks().open(docks().current, False),
            ("Ctrl+Shift+W",),
        ),
    ]


def register_layouts(actions: Registry, w: MainWindow) -> None:
    """Register the actions about layouts, in place of those that were: the user saves and deletes some."""
    for old in [action.id for action in actions if action.id.startswith(LAYOUT)]:
        actions.remove(old)
    group = _in_view(tr("Layouts"))
    named = {
        EXPLORE: (tr("Explore"), tr("Cost, time and words above each other, all views at hand")),
        PRESENT: (tr("Present"), tr("A few views, large, without the form")),
    }
    own = w.layouts.own()
    shown = {name: (f"{LAYOUT}{name}", *texts) for name, texts in named.items()}
    shown |= {name: (f"{LAYOUT}own.{name}", name, "") for name in own}
    for name, (id, text, help) in shown.items():
        take, taken = partial(w.layouts.take, name), partial(w.layouts.is_taken, name)
        actions.add(Action(id, text, group, take, checked=taken, help=help))
    actions.add(Action(f"{LAYOUT}save", tr("Save the layout as…"), group, w.layouts.ask))
    actions.add(Action(f"{LAYOUT}reset", tr("Reset the layout"), group, w.layouts.reset))
    inside = f"{group}{SUBMENU}{tr('Delete')}"
    for name in own:
        text, delete = tr("Delete {0}").format(name), partial(w.layouts.delete, name)
        actions.add(Action(f"{LAYOUT}delete.{name}", text, inside, delete))


def _in_view(submenu: str) -> str:
    return f"{tr('View')}{SUBMENU}{submenu}"
