"""The actions of the views: open and close, go to one, give one all the room; and the layouts that place them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtCore import QCoreApplication

from app.views import PAGES, VIEWS, title_of, view_of
from app.window.actions.actions import SUBMENU, Action, Registry
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
    return [*_views(w), *_scale(w), *_speech(w)]


def _views(w: MainWindow) -> list[Action]:
    add, desk = partial(Action, group=_in_view(tr("Views"))), w.desk
    docks = desk.docks

    def go(name: str) -> None:
        w.show_desk()
        docks.go_to(view_of(name))
        if name in PAGES:
            desk.views[view_of(name)].pages[name].setChecked(True)

    digits = range(1, 10)
    keys = dict(zip(VIEWS, (*(f"Ctrl+{n}" for n in digits), *(f"Alt+{n}" for n in digits)), strict=False))
    return [
        add(
            "view.form",
            tr("Pipeline"),
            lambda: desk.form.setVisible(desk.form.isHidden()),
            keys=("Ctrl+0",),
            checked=lambda: not desk.form.isHidden(),
        ),
        *(
            add(
                f"go.{name}",
                tr(title_of(name)),
                partial(go, name),
                keys=tuple(filter(None, [keys.get(name)])),
                checked=partial(docks.is_open, name) if name in VIEWS else None,
                help=tr("Opens the view if it is closed, and brings it to the front"),
            )
            for name in (*VIEWS, *PAGES)
        ),
        add(
            "view.alone",
            tr("Only this view"),
            docks.toggle_alone,
            keys=("Ctrl+Return",),
            checked=lambda: docks.is_alone,
            help=tr("The view with the keyboard takes all the room, until Esc"),
        ),
        add("view.float", tr("Float this view, or dock it again"), docks.float_or_dock),
        add("view.close", tr("Close this view"), lambda: docks.open(docks.current, False), keys=("Ctrl+Shift+W",)),
    ]


def cost_of(w: MainWindow) -> CostView:
    return cast("CostView", w.desk.views["cost"])


def _scale(w: MainWindow) -> list[Action]:
    """How the scale of the cost behaves: `SCALE`, in the menu of that view too."""
    add = partial(Action, group=tr("View"), enabled=w.when.has_session)
    cost = cost_of(w)
    return [
        add(
            "scale.others",
            tr("Time of other programs in the cost"),
            w.others.switch.toggle,
            checked=w.others.switch.isChecked,
            help=tr("Draws it on top of the run's own time, which all figures are of"),
        ),
        add(
            "scale.lock",
            tr("Lock cost scale"),
            lambda: cost.set_locked(not cost.holding.locked),
            checked=lambda: cost.holding.locked,
            help=tr("The scale stays as it is, whatever the data do"),
        ),
        add(
            "scale.log",
            tr("Logarithmic scale of the cost"),
            lambda: cost.set_logarithmic(not cost.holding.log),
            checked=lambda: cost.holding.log,
        ),
    ]


def _speech(w: MainWindow) -> list[Action]:
    """What is shown of the sound: `SPEECH`, in the menu of that view too."""
    words = cast("WordsView", w.desk.views["words"])
    words.set_spectrogram(w.memory.text(SPECTROGRAM) == "on")

    def toggle() -> None:
        words.set_spectrogram(not words.with_spectrogram)
        w.memory.remember(SPECTROGRAM, "on" if words.with_spectrogram else "")

    return [
        Action(
            "speech.spectrogram",
            tr("Spectrogram of the speech"),
            toggle,
            tr("View"),
            checked=lambda: words.with_spectrogram,
            help=tr("Under the waveform; it is read again from the sound's file"),
        )
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
        actions.add(Action(id, text, take, group, checked=taken, help=help))
    actions.add(Action(f"{LAYOUT}save", tr("Save the layout as…"), w.layouts.ask, group))
    actions.add(Action(f"{LAYOUT}reset", tr("Reset the layout"), w.layouts.reset, group))
    inside = f"{group}{SUBMENU}{tr('Delete')}"
    for name in own:
        text, delete = tr("Delete {0}").format(name), partial(w.layouts.delete, name)
        actions.add(Action(f"{LAYOUT}delete.{name}", text, delete, inside))


def _in_view(submenu: str) -> str:
    return f"{tr('View')}{SUBMENU}{submenu}"
