"""The list of the actions of the window: what a user can do, with which key, and when."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, Qt

from app.export import writers
from app.model.toggles import Toggle
from app.style.theme import theme
from app.views import VIEWS
from app.window.actions import exporting
from app.window.actions.actions import Action, Registry, always

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

ZOOM_STEP = 1.4
PAN_STEP = 0.2

MOUSE = (
    ("Ctrl + wheel", "zoom at the mouse"),
    ("drag", "select a time range"),
    ("Shift + drag", "move the time range"),
    ("double-click", "show everything"),
    ("double-click a title", "only this view, or all"),
)


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("commands", text)


def mouse_rows() -> tuple[tuple[str, str], ...]:
    """Return what mouse and wheel do in the charts, for the key sheet."""
    return tuple((tr(keys), tr(text)) for keys, text in MOUSE)


def register(actions: Registry, window: MainWindow) -> None:
    """Register the actions of ``window`` that need no views."""
    for action in (*_file(window), *_run(window), *_view(window), *_help(window)):
        actions.add(action)


def register_views(actions: Registry, window: MainWindow) -> None:
    """Register the actions about views; this loads the views, so it waits until the desk exists."""
    from app.window.actions.charts import chart_actions
    from app.window.actions.views import register_layouts, view_actions

    for action in (*_exports(window), *view_actions(window), *chart_actions(window)):
        actions.add(action)
    register_layouts(actions, window)


def _file(w: MainWindow) -> list[Action]:
    group = tr("File")
    has_session = w.when.has_session
    done = w.when.has_finished_session

    def add(
        id: str,
        text: str,
        handler: Callable[[], object],
        *keys: str,
        enabled: Callable[[], bool] = lambda: True,
        help: str = "",
    ) -> Action:
        return Action(id, text, group, handler, keys, enabled, None, help)

    return [
        add("file.new", tr("New run on audio files…"), w.new_run, "Ctrl+N", enabled=w.when.may_run),
        add("file.folder", tr("New run on a folder…"), w.new_run_folder, enabled=w.when.may_run),
        add(
            "file.bundled",
            tr("Decode the bundled voices"),
            w.use_bundled,
            enabled=w.when.has_bundled,
        ),
        add("file.open", tr("Open session…"), w.files.ask_session, "Ctrl+O"),
        add(
            "file.copy",
            tr("Save a copy of the session…"),
            w.files.save_copy,
            "Ctrl+S",
            enabled=done,
            help=tr("A session is saved during recording; this makes a copy of a finished one"),
        ),
        add("file.close", tr("Close session"), w.close_session, "Ctrl+W", enabled=has_session),
        add(
            "file.delete", tr("Move the session to the bin…"), partial(_ask_delete, w), enabled=done
        ),
        add("file.export", tr("Export…"), w.open_export, "Ctrl+E", enabled=has_session),
        add("file.quit", tr("Quit"), w.close, "Ctrl+Q"),
    ]


def _ask_delete(w: MainWindow) -> None:
    """Ask whether the session shown is to go."""
    path = w.playhead.path
    if path is None:
        return
    banner = w.notices.ask(tr("Move {0} to the bin?").format(path.name))
    banner.add_choice(tr("Move to the bin"), lambda: w.files.delete(path))
    banner.add_choice(tr("Keep"))


def _exports(w: MainWindow) -> list[Action]:
    group, has_session = tr("File"), w.when.has_session
    ask = partial(partial, exporting.ask_data, w.files, w.playhead)

    def add(id: str, text: str, handler: Callable[[], object]) -> Action:
        return Action(f"export.{id}", text, group, handler, enabled=has_session)

    return [
        add("desk", tr("Picture of the desk…"), partial(exporting.open_picture, w)),
        *(
            add(
                view_id,
                tr("Picture of {0}…").format(tr(entry.load().title)),
                partial(exporting.open_picture, w, view_id),
            )
            for view_id, entry in VIEWS.items()
        ),
        *(
            add(writer.FORMAT.name, tr("{0}…").format(tr(writer.FORMAT.title)), ask(writer.FORMAT))
            for writer in writers()
        ),
    ]


def _run(w: MainWindow) -> list[Action]:
    group = tr("Run")

    def add(
        id: str,
        text: str,
        handler: Callable[[], object],
        *keys: str,
        enabled: Callable[[], bool] = lambda: True,
        checked: Callable[[], bool] | None = None,
    ) -> Action:
        return Action(id, text, group, handler, keys, enabled, checked)

    return [
        add("run.start", tr("Run"), w.runs.start, "Ctrl+R", enabled=w.when.can_start),
        add("run.stop", tr("Stop the run"), w.runs.stop, "Ctrl+.", enabled=w.when.can_stop),
        add("run.demo", tr("Run the demo"), w.runs.demo, "Ctrl+D", enabled=w.when.can_demo),
        Action(
            "run.explain",
            tr("Explain the stage in the breakdown"),
            group,
            w.explain_stage,
            enabled=lambda: w.cannot_explain() is None,
            obstacle=w.cannot_explain,
            help=tr("Scores some seconds of the session again, hot, cold and reshaped"),
        ),
        add("run.mark", tr("Set a marker"), w.runs.mark, "M", enabled=w.when.is_running),
        Action(
            "run.compare",
            tr("A/B: decode in turn with and without the last change"),
            group,
            w.side_by_side.switch,
            ("B",),
            enabled=lambda: w.side_by_side.active or w.side_by_side.obstacle() is None,
            checked=lambda: w.side_by_side.active,
            obstacle=w.side_by_side.obstacle,
            help=tr(
                "One utterance under both settings in turn, as fast as possible, until it is decided"
            ),
        ),
        add(
            "run.show",
            tr("Show the running session"),
            w.runs.show_running,
            enabled=w.when.is_elsewhere,
        ),
        *(_toggle(group, toggle) for toggle in w.pipeline.toggles),
    ]


def _toggle(group: str, toggle: Toggle) -> Action:
    return Action(
        f"toggle.{toggle.key}",
        tr(toggle.declared.title),
        group,
        toggle.flip,
        (toggle.declared.key,),
        enabled=lambda: toggle.obstacle is None,
        checked=lambda: toggle.idle is None and toggle.on,
        obstacle=lambda: toggle.obstacle,
    )


def _view(w: MainWindow) -> list[Action]:
    group = tr("View")
    axis, playhead = w.axis, w.playhead
    has = w.when.has_session

    def add(
        id: str,
        text: str,
        handler: Callable[[], object],
        *keys: str,
        enabled: Callable[[], bool] = has,
        checked: Callable[[], bool] | None = None,
        repeats: bool = False,
    ) -> Action:
        return Action(id, text, group, handler, keys, enabled, checked, repeats=repeats)

    def again(id: str, text: str, handler: Callable[[], object], *keys: str) -> Action:
        return add(id, text, handler, *keys, repeats=True)

    return [
        add("view.pause", tr("Pause or play; a run goes on"), playhead.toggle, "Space"),
        add("view.live", tr("Back to live"), playhead.go_live, "L", enabled=w.when.is_live),
        add(
            "view.sound",
            tr("Play the sound of the selection or utterance"),
            w.sound.toggle,
            "P",
            checked=lambda: w.sound.playing,
        ),
        again("view.previous", tr("Previous utterance or marker"), partial(playhead.step, -1), ","),
        again("view.next", tr("Next utterance or marker"), partial(playhead.step, 1), "."),
        again("view.slower", tr("Replay slower"), partial(w.change_speed, -1), "["),
        again("view.faster", tr("Replay faster"), partial(w.change_speed, 1), "]"),
        again("view.zoom_in", tr("Zoom in"), lambda: axis.zoom(1 / ZOOM_STEP), "W", "Ctrl++"),
        again("view.zoom_out", tr("Zoom out"), lambda: axis.zoom(ZOOM_STEP), "S", "Ctrl+-"),
        again("view.left", tr("Earlier"), lambda: axis.pan(-PAN_STEP), "A"),
        again("view.right", tr("Later"), lambda: axis.pan(PAN_STEP), "D"),
        add("view.fit", tr("Show everything"), axis.fit, "F", "0"),
        add("view.select", tr("Select this utterance"), playhead.select_utterance, "U"),
        add("view.from", tr("Select from the cursor on"), partial(playhead.select_from, True), "I"),
        add("view.to", tr("Select up to the cursor"), partial(playhead.select_from, False), "O"),
        add(
            "view.window",
            tr("Auto-scroll with the cursor"),
            partial(_toggle_window, w),
            "Shift+F",
            checked=lambda: axis.windowed,
        ),
        add("view.clear", tr("Clear the selection"), w.escape, "Esc", enabled=always),
        add("page.welcome", tr("Welcome page"), w.show_welcome, "Alt+Home", enabled=always),
        Action(
            "page.lab",
            tr("Lab: claims tried on this machine"),
            group,
            w.show_lab,
            ("Alt+L",),
            help=tr("Experiments about the cost of recognition, each with its picture and verdict"),
        ),
        add(
            "theme.toggle",
            tr("Dark theme"),
            lambda: w.choose_theme("light" if theme().is_dark else "dark"),
            "Ctrl+T",
            enabled=always,
            checked=lambda: theme().is_dark,
        ),
        add(
            "theme.system",
            tr("Follow the system's theme"),
            lambda: w.choose_theme("system"),
            enabled=always,
        ),
    ]


def _toggle_window(w: MainWindow) -> None:
    if w.axis.windowed:
        w.axis.fit()
    else:
        w.axis.follow_window()


def _help_page(w: MainWindow, name: str) -> None:
    """Show a page of the Help menu, loaded now."""
    from app.window import help_pages

    page = help_pages.PAGES[name](w)
    page.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    page.open()


def _sessions_folder(w: MainWindow) -> None:
    from app.window import help_pages
    from profiler.files.paths import sessions_dir

    try:
        help_pages.open_folder(sessions_dir())
    except OSError as error:
        w.notices.error(tr("Sessions cannot be written: {0}.").format(error.strerror or error))


def _help(w: MainWindow) -> list[Action]:
    group = tr("Help")
    return [
        Action("help.palette", tr("Commands…"), group, w.open_palette, ("Ctrl+Shift+P",)),
        Action("help.keys", tr("Keys"), group, w.open_keys, ("?",)),
        Action("help.terms", tr("Terms"), group, partial(_help_page, w, "terms"), ("F1",)),
        Action("help.doctor", tr("What works here"), group, partial(_help_page, w, "doctor")),
        Action("help.sessions", tr("Folder of sessions"), group, partial(_sessions_folder, w)),
        Action("help.about", tr("About asrscope"), group, partial(_help_page, w, "about")),
    ]
