"""The list of the actions of the window: what a user can do, with which key, and when."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, Qt

from app.export import formats
from app.model.conditions import Condition
from app.model.toggles import Toggle
from app.style.theme import theme
from app.window.actions import exporting
from app.window.actions.actions import Action, Registry
from app.window.actions.selection import register_bookmarks, selection_actions
from app.window.tasks.workbench import TASKS

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "commands")

ZOOM_STEP = 1.4
PAN_STEP = 0.2

MOUSE = (
    ("Ctrl + wheel", "zoom at the mouse"),
    ("drag", "select time; Alt: without snapping"),
    ("Shift + drag", "move the time range"),
    ("double-click", "show everything"),
    ("right-click", "copy, export, zoom to the selection"),
    ("double-click a title", "only this view, or all"),
)


def mouse_rows() -> tuple[tuple[str, str], ...]:
    return tuple((tr(keys), tr(text)) for keys, text in MOUSE)


def register(actions: Registry, window: MainWindow) -> None:
    """Register the actions of ``window`` that need no views."""
    for action in (*_file(window), *_run(window), *_help(window), *_view(window), *selection_actions(window)):
        actions.add(action)


def register_views(actions: Registry, window: MainWindow) -> None:
    """Register the actions about views; this loads the views, so it waits until the desk exists."""
    from app.window.actions.views import register_layouts, view_actions

    for action in (*_exports(window), *view_actions(window)):
        actions.add(action)
    register_bookmarks(actions, window)
    register_layouts(actions, window)


def _file(w: MainWindow) -> list[Action]:
    add = partial(Action, group=tr("File"))
    has, done, may_run = w.when.has_session, w.when.has_finished_session, w.when.may_run
    bundled, run_on, begin = w.when.has_bundled, partial(partial, _run_on, w), partial(partial, w.bench.begin)
    return [
        add("file.new", tr("New run on audio files…"), run_on(w.files.ask_audio), keys=("Ctrl+N",), enabled=may_run),
        add("file.folder", tr("New run on a folder…"), run_on(w.files.ask_folder), enabled=may_run),
        add(
            "file.record",
            tr("New run on a recording from the microphone…"),
            begin("next_run.microphone"),
            enabled=may_run,
        ),
        add("file.bundled", tr("Bundled voices for the next run"), w.use_bundled, enabled=bundled),
        add("file.playlist", tr("Audio of the next run…"), begin("next_run.playlist"), enabled=w.when.has_audio),
        add(
            "file.model",
            tr("Open model…"),
            w.model_folder.ask,
            help=tr("The folder of a Kaldi, Vosk or CMUSphinx model, for the next run"),
        ),
        add("file.open", tr("Open session…"), w.files.ask_session, keys=("Ctrl+O",)),
        add(
            "file.study",
            tr("Open study…"),
            w.files.ask_study,
            help=tr("The folder that a sweep has made: its trials, and which settings are best"),
        ),
        add(
            "file.copy",
            tr("Save a copy of the session…"),
            w.files.save_copy,
            keys=("Ctrl+S",),
            enabled=done,
            help=tr("A session is saved during recording; this makes a copy of a finished one"),
        ),
        add(
            "file.rename",
            tr("Rename the session…"),
            partial(_ask_name, w),
            keys=("F2",),
            enabled=done,
            help=tr("Its bookmarks get the new name too"),
        ),
        add("file.close", tr("Close session"), w.close_session, keys=("Ctrl+W",), enabled=has),
        add("file.delete", tr("Move the session to the bin…"), partial(_ask_delete, w), enabled=done),
        add("file.export", tr("Export…"), w.open_export, keys=("Ctrl+E",), enabled=has),
        add("file.quit", tr("Quit"), w.close, keys=("Ctrl+Q",)),
    ]


def _run_on(w: MainWindow, ask: Callable[[], bool]) -> None:
    if ask():
        w.runs.start()


def _ask_name(w: MainWindow) -> None:
    if w.playhead.path is not None:
        w.files.ask_name(w.playhead.path)


def _ask_delete(w: MainWindow) -> None:
    """Ask whether the session shown is to go."""
    path = w.playhead.path
    if path is None:
        return
    banner = w.notices.ask(tr("Move {0} to the bin?").format(path.name))
    banner.add_choice(tr("Move to the bin"), lambda: w.files.delete(path))
    banner.add_choice(tr("Keep"))


def _exports(w: MainWindow) -> list[Action]:
    add = partial(Action, group=tr("File"), enabled=w.when.has_session)
    data = partial(partial, exporting.ask_data, w.files, w.playhead)
    return [
        add("export.view", tr("Picture of this view…"), lambda: exporting.open_picture(w, w.desk.docks.current)),
        add("export.desk", tr("Picture of all views…"), partial(exporting.open_picture, w)),
        *(add(f"export.{form.name}", tr("{0}…").format(tr(form.title)), data(form)) for form in formats()),
    ]


def _run(w: MainWindow) -> list[Action]:
    group, when = tr("Run"), w.when
    add = partial(Action, group=group)
    needs = {
        "session": Condition(w.bench.session_reason),
        "machine": Condition(w.bench.machine_reason),
        "audio": Condition(w.bench.audio_reason),
        "finished": when.has_finished_session,
        "arms": Condition(w.bench.arms_reason),
    }
    return [
        add("run.start", tr("Run"), w.runs.start, keys=("Ctrl+R",), enabled=when.can_start),
        add(
            "run.on",
            tr("Run on…"),
            partial(w.bench.begin, "next_run.run_on"),
            enabled=when.may_run,
            help=tr("Runs the settings on another machine over ssh, and records the session here"),
        ),
        add("run.stop", tr("Stop the run"), w.runs.stop, keys=("Ctrl+.",), enabled=when.can_stop),
        add("run.demo", tr("Run the demo"), w.runs.demo, keys=("Ctrl+D",), enabled=when.can_demo),
        *(
            add(
                task.id,
                tr(task.text),
                partial(w.bench.begin, task.place),
                enabled=needs[task.needs],
                help=tr(task.help),
            )
            for task in TASKS
        ),
        add(
            "run.undo",
            tr("Undo the last change of a setting"),
            w.undo.undo,
            keys=("Ctrl+Z",),
            enabled=Condition(w.undo.undo_unavailable_reason),
            help=tr("Of a live change, the run goes on with the value before"),
        ),
        add(
            "run.redo",
            tr("Redo the change of a setting"),
            w.undo.redo,
            keys=("Ctrl+Shift+Z",),
            enabled=Condition(w.undo.redo_unavailable_reason),
        ),
        add("run.mark", tr("Set a marker"), w.runs.current.mark, keys=("M",), enabled=when.is_running),
        add(
            "run.compare",
            tr("A/B: decode in turn with and without the last change"),
            w.side_by_side.switch,
            keys=("B",),
            enabled=Condition(w.side_by_side.unavailable_reason),
            checked=lambda: w.side_by_side.active,
            help=tr("One utterance under both settings in turn, as fast as possible, until it is decided"),
        ),
        add("run.show", tr("Show the running session"), w.runs.current.show, enabled=when.is_elsewhere),
        *(_toggle(group, toggle) for toggle in w.pipeline.toggles),
    ]


def _toggle(group: str, toggle: Toggle) -> Action:
    return Action(
        f"toggle.{toggle.key}",
        tr(toggle.declared.title),
        toggle.flip,
        group,
        (toggle.declared.key,),
        enabled=Condition(lambda: toggle.unavailable_reason),
        checked=lambda: toggle.idle is None and toggle.on,
    )


def _view(w: MainWindow) -> list[Action]:
    axis, playhead = w.axis, w.playhead
    anytime = partial(Action, group=tr("View"))
    add = partial(anytime, enabled=w.when.has_session)
    again = partial(add, repeats=True)
    step = partial(partial, playhead.step)
    slow = tr("Selects the next frames that took longer than their audio (RTF above 1)")
    wrong = tr("Selects the next place where the recognised words differ from the reference")
    return [
        add("view.pause", tr("Pause or play; a run goes on"), playhead.toggle, keys=("Space",)),
        anytime("view.live", tr("Back to live"), playhead.go_live, keys=("L",), enabled=w.when.is_live),
        add(
            "view.sound",
            tr("Play the sound of the selection or utterance"),
            w.sound.toggle,
            keys=("P",),
            checked=lambda: w.sound.playing,
        ),
        again("view.previous", tr("Previous utterance or marker"), step(-1), keys=(",",)),
        again("view.next", tr("Next utterance or marker"), step(1), keys=(".",)),
        *(
            again(f"jump.{name}", text, partial(to, direction), keys=(key,), help=help)
            for name, text, to, direction, key, help in (
                ("violation", tr("Next real-time violation"), w.jumps.to_violation, 1, "V", slow),
                ("violation_back", tr("Previous real-time violation"), w.jumps.to_violation, -1, "Shift+V", slow),
                ("word_error", tr("Next word error"), w.jumps.to_word_error, 1, "X", wrong),
                ("word_error_back", tr("Previous word error"), w.jumps.to_word_error, -1, "Shift+X", wrong),
            )
        ),
        again("view.slower", tr("Replay slower"), lambda: w.desk.transport.change_speed(-1), keys=("[",)),
        again("view.faster", tr("Replay faster"), lambda: w.desk.transport.change_speed(1), keys=("]",)),
        again("view.zoom_in", tr("Zoom in"), lambda: axis.zoom(1 / ZOOM_STEP), keys=("W", "Ctrl++")),
        again("view.zoom_out", tr("Zoom out"), lambda: axis.zoom(ZOOM_STEP), keys=("S", "Ctrl+-")),
        again("view.left", tr("Earlier"), lambda: axis.pan(-PAN_STEP), keys=("A",)),
        again("view.right", tr("Later"), lambda: axis.pan(PAN_STEP), keys=("D",)),
        add("view.fit", tr("Show everything"), axis.fit, keys=("F", "0")),
        add(
            "view.window",
            tr("Auto-scroll with the cursor"),
            partial(_toggle_window, w),
            keys=("Shift+F",),
            checked=lambda: axis.windowed,
        ),
        anytime("view.clear", tr("Clear the selection"), w.escape, keys=("Esc",)),
        anytime("page.welcome", tr("Welcome page"), w.show_welcome, keys=("Alt+Home",)),
        anytime(
            "page.lab",
            tr("Lab: claims tried on this machine"),
            w.show_lab,
            keys=("Alt+L",),
            help=tr("Experiments about the cost of recognition, each with its picture and verdict"),
        ),
        anytime(
            "theme.toggle",
            tr("Dark theme"),
            lambda: w.choose_theme("light" if theme().is_dark else "dark"),
            keys=("Ctrl+T",),
            checked=lambda: theme().is_dark,
        ),
        anytime("theme.system", tr("Follow the system's theme"), partial(w.choose_theme, "system")),
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
    from app.window.notices import open_outside
    from profiler.files.paths import sessions_dir

    try:
        open_outside(sessions_dir())
    except OSError as error:
        w.notices.error(tr("Sessions cannot be written: {0}.").format(error.strerror or error))


def _help(w: MainWindow) -> list[Action]:
    add, page = partial(Action, group=tr("Help")), partial(partial, _help_page, w)
    return [
        add("help.palette", tr("Commands…"), w.open_palette, keys=("Ctrl+Shift+P",)),
        add("help.keys", tr("Keys"), w.open_keys, keys=("?",)),
        add("help.terms", tr("Terms"), page("terms"), keys=("F1",)),
        add("help.doctor", tr("What works here"), page("doctor")),
        add("help.sessions", tr("Folder of sessions"), partial(_sessions_folder, w)),
        add("help.about", tr("About asrscope"), page("about")),
    ]
