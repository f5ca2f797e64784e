"""The actions of the views: open and close, go to one, give one all the room; and the layouts that place them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtCore import QCoreApplication

from app.views import PAGES, VIEWS, title_of, view_of
from app.window.actions.actions import ALWAYS, SUBMENU, Action, Registry
from app.window.layouts import EXPLORE, PRESENT

if TYPE_CHECKING:
    from app.views.cost import CostView
    from app.views.words import WordsView
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "views")

SCALE: Final = ("scale.others", "scale.lock", "scale.log")  # The actions in the menu of the cost view
SPEECH: Final = ("speech.spectrogram",)  # Those in the menu of the speech and words
SPECTROGRAM: Final = "speech/spectrogram"  # Key under which the window remembers whether it is shown
LAYOUT: Final = "layout."  # Ids of actions about layouts begin so


def view_actions(w: MainWindow) -> list[Action]:
    return [*_views(w), *_scale(w), _spectrogram(w)]


def _views(w: MainWindow) -> list[Action]:
    add, desk = partial(Action, _in_view(tr("Views"))), w.desk
    docks, form = desk.docks, desk.form

    def go(name: str) -> None:
        w.show_desk()
        docks.go_to(view_of(name))
        if name in PAGES:
            desk.views[view_of(name)].pages[name].setChecked(True)

    def is_open(name: str) -> Callable[[], bool] | None:
        return partial(docks.is_open, name) if name in VIEWS else None

    digits, opens = range(1, 10), tr("Opens the view if it is closed, and brings it to the front")
    keys = dict(zip(VIEWS, (*(f"Ctrl+{n}" for n in digits), *(f"Alt+{n}" for n in digits)), strict=False))
    alone = tr("The view with the keyboard takes all the room, until Esc")
    swap, shown = lambda: form.setVisible(form.isHidden()), lambda: not form.isHidden()
    return [
        add("view.form", tr("Pipeline"), swap, "Ctrl+0", checked=shown),
        *(
            add(f"go.{n}", tr(title_of(n)), partial(go, n), keys.get(n, ""), help=opens, checked=is_open(n))
            for n in (*VIEWS, *PAGES)
        ),
        add(
            "view.alone", tr("Only this view"), docks.toggle_alone, "Ctrl+Return", ALWAYS, alone, lambda: docks.is_alone
        ),
        add("view.float", tr("Float this view, or dock it again"), docks.float_or_dock),
        add("view.close", tr("Close this view"), lambda: docks.open(docks.current, False), "Ctrl+Shift+W"),
    ]


def cost_of(w: MainWindow) -> CostView:
    return cast("CostView", w.desk.views["cost"])


def _scale(w: MainWindow) -> list[Action]:
    """How the scale of the cost behaves: `SCALE`, in the menu of that view too."""
    add = partial(Action, tr("View"), enabled=w.when.has_session)
    cost, others = cost_of(w), w.others.switch
    top = tr("Draws it on top of the run's own time, which all figures are of")
    still = tr("The scale stays as it is, whatever the data do")

    def lock() -> None:
        cost.set_holding(replace(cost.holding, locked=not cost.holding.locked))

    def change() -> None:
        cost.set_holding(replace(cost.holding, log=not cost.holding.log))

    return [
        add(
            "scale.others", tr("Time of other programs in the cost"), others.toggle, checked=others.isChecked, help=top
        ),
        add("scale.lock", tr("Lock cost scale"), lock, checked=lambda: cost.holding.locked, help=still),
        add("scale.log", tr("Logarithmic scale of the cost"), change, checked=lambda: cost.holding.log),
    ]


def _spectrogram(w: MainWindow) -> Action:
    words = cast("WordsView", w.desk.views["words"])
    words.set_spectrogram(w.memory.text(SPECTROGRAM) == "on")

    def toggle() -> None:
        words.set_spectrogram(not words.with_spectrogram)
        w.memory.remember(SPECTROGRAM, "on" if words.with_spectrogram else "")

    text, help = tr("Spectrogram of the speech"), tr("Under the waveform; it is read again from the sound's file")
    return Action(tr("View"), SPEECH[0], text, toggle, help=help, checked=lambda: words.with_spectrogram)


def register_layouts(actions: Registry, w: MainWindow) -> None:
    """Register the actions about layouts, in place of those that were: the user saves and deletes some."""
    group, layouts = _in_view(tr("Layouts")), w.layouts
    add, own = partial(Action, group), layouts.own()
    shown = (
        (EXPLORE, EXPLORE, tr("Explore"), tr("Cost, time and words above each other, all views at hand")),
        (PRESENT, PRESENT, tr("Present"), tr("A few views, large, without the form")),
        *((f"own.{name}", name, name, "") for name in own),
    )

    def taken(name: str) -> Callable[[], bool]:
        return lambda: layouts.name == name

    made = [
        add(f"{LAYOUT}{id}", text, partial(layouts.take, name), help=help, checked=taken(name))
        for id, name, text, help in shown
    ]
    made.append(add(f"{LAYOUT}save", tr("Save the layout as…"), layouts.ask))
    made.append(add(f"{LAYOUT}reset", tr("Reset the layout"), layouts.reset))
    delete = partial(Action, f"{group}{SUBMENU}{tr('Delete')}")
    for name in own:
        made.append(delete(f"{LAYOUT}delete.{name}", tr("Delete {0}").format(name), partial(layouts.delete, name)))
    actions.replace(LAYOUT, made)


def _in_view(submenu: str) -> str:
    return f"{tr('View')}{SUBMENU}{submenu}"
