"""The list of the actions of the window: what a user can do, with which key, and when."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication

from app.export import formats
from app.model.conditions import Condition
from app.model.time_axis import CHANGE, LIVE, RANGE, WHOLE, Kind
from app.model.toggles import Toggle
from app.style.plain_text import TextQuestion, ask_text, open_dialog
from app.style.theme import theme
from app.window.actions import exporting
from app.window.actions.actions import SUBMENU, Action, Registry

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "commands")

ZOOM_STEP, PAN_STEP = 1.4, 0.2
SCOPES: Final = tuple(f"scope.{kind}" for kind in (LIVE, CHANGE, RANGE, WHOLE))  # The choices of the chip
OF_SESSION: Final = "bookmarks."  # Ids of the actions about the bookmarks of a session begin so


def register(actions: Registry, window: MainWindow) -> None:
    """Register the actions of ``window`` that need no views."""
    for action in (*_file(window), *_run(window), *_help(window), *_view(window), *_selection(window)):
        actions.add(action)


def register_views(actions: Registry, window: MainWindow) -> None:
    """Register the actions about views; this loads the views, so it waits until the desk exists."""
    from app.window.actions.views import register_layouts, view_actions

    add = partial(Action, tr("File"), enabled=window.when.has_session)
    data = partial(partial, exporting.ask_data, window)
    picture = partial(exporting.open_picture, window)
    exports = (
        add("export.view", tr("Picture of this view…"), lambda: picture(window.desk.docks.current)),
        add("export.desk", tr("Picture of all views…"), picture),
        *(add(f"export.{form.name}", tr("{0}…").format(tr(form.title)), data(form)) for form in formats()),
    )
    for action in (*exports, *view_actions(window)):
        actions.add(action)
    register_bookmarks(actions, window)
    register_layouts(actions, window)


def _file(w: MainWindow) -> list[Action]:
    add, files, session = partial(Action, tr("File")), w.files, w.session_files
    has, done, may_run = w.when.has_session, w.when.has_finished_session, w.when.may_run
    begin = partial(partial, w.bench.begin)
    record, playlist = tr("New run on a recording from the microphone…"), tr("Audio of the next run…")
    model = tr("The folder of a Kaldi, Vosk or CMUSphinx model, for the next run")
    study = tr("The folder that a sweep has made: its trials, and which settings are best")
    copy = tr("A session is saved during recording; this makes a copy of a finished one")
    rename = tr("Its bookmarks get the new name too")

    def run_on(ask: Callable[[], bool]) -> Callable[[], None]:
        return lambda: w.runs.start() if ask() else None

    return [
        add("file.new", tr("New run on audio files…"), run_on(files.ask_audio), "Ctrl+N", may_run),
        add("file.folder", tr("New run on a folder…"), run_on(files.ask_folder), enabled=may_run),
        add("file.record", record, begin("next_run.microphone"), enabled=may_run),
        add("file.bundled", tr("Bundled voices for the next run"), w.use_bundled, enabled=w.when.has_bundled),
        add("file.playlist", playlist, begin("next_run.playlist"), enabled=w.when.has_audio),
        add("file.model", tr("Open model…"), w.model_folder.ask, help=model),
        add("file.open", tr("Open session…"), files.ask_session, "Ctrl+O"),
        add("file.study", tr("Open study…"), files.ask_study, help=study),
        add("file.copy", tr("Save a copy of the session…"), session.save_copy, "Ctrl+S", done, copy),
        add("file.rename", tr("Rename the session…"), session.ask_name, "F2", done, rename),
        add("file.close", tr("Close session"), w.close_session, "Ctrl+W", has),
        add("file.delete", tr("Move the session to the bin…"), session.ask_delete, enabled=done),
        add("file.export", tr("Export…"), w.open_export, "Ctrl+E", has),
        add("file.quit", tr("Quit"), w.close, "Ctrl+Q"),
    ]


def _run(w: MainWindow) -> list[Action]:
    add, runs, when = partial(Action, tr("Run")), w.runs, w.when
    undo, redo = Condition(w.undo.undo_unavailable_reason), Condition(w.undo.redo_unavailable_reason)
    back = tr("Of a live change, the run goes on with the value before")
    host = tr("Runs the settings on another machine over ssh, and records the session here")
    turns = tr("A/B: decode in turn with and without the last change")
    decided = tr("One utterance under both settings in turn, as fast as possible, until it is decided")
    side, active = Condition(w.side_by_side.unavailable_reason), lambda: w.side_by_side.active
    return [
        add("run.start", tr("Run"), runs.start, "Ctrl+R", when.can_start),
        add("run.on", tr("Run on…"), partial(w.bench.begin, "next_run.run_on"), enabled=when.may_run, help=host),
        add("run.stop", tr("Stop the run"), runs.stop, "Ctrl+.", when.can_stop),
        add("run.demo", tr("Run the demo"), runs.demo, "Ctrl+D", when.can_demo),
        *_tasks(w),
        add("run.undo", tr("Undo the last change of a setting"), w.undo.undo, "Ctrl+Z", undo, back),
        add("run.redo", tr("Redo the change of a setting"), w.undo.redo, "Ctrl+Shift+Z", redo),
        add("run.mark", tr("Set a marker"), runs.current.mark, "M", when.is_running),
        add("run.compare", turns, w.side_by_side.switch, "B", side, decided, checked=active),
        add("run.show", tr("Show the running session"), runs.current.show, enabled=when.is_elsewhere),
        *(_toggle(toggle) for toggle in w.pipeline.toggles),
    ]


def _tasks(w: MainWindow) -> list[Action]:
    begin, bench = partial(partial, w.bench.begin), w.bench
    reasons = (bench.session_reason, bench.machine_reason, bench.audio_reason, bench.arms_reason)
    session, machine, audio, arms = map(Condition, reasons)
    ratios = tr("Ratio of each stage with its interval")
    tasks = (
        ("explain", tr("Explain the stage in the breakdown"), begin("replays.explain"), session),
        ("confirm", tr("Confirm the verdict of that stage"), begin("replays.confirm"), session),
        ("audit", tr("Audit: what this configuration costs in scores and words"), begin("replays.audit"), session),
        ("calibrate", tr("Measure the roofs of this machine"), begin("replays.calibrate"), machine),
        ("compare_sessions", tr("Compare with another session…"), begin("compare"), w.when.has_finished_session),
        ("compare_arms", tr("Compare A and B of this session"), begin("compare.arms"), arms),
        ("sweep", tr("Sweep…"), begin("sweep"), audio),
        ("capacity", tr("How many streams?…"), begin("replays.capacity"), audio),
    )
    help = {
        "explain": tr("Scores some seconds of the session again, hot, cold and reshaped"),
        "confirm": tr("Changes block, threads and parameters of the stage, and compares with what is predicted"),
        "audit": tr("Decodes the session's audio with its configuration and with exact scoring"),
        "calibrate": tr("Rates and bandwidth, which verdicts are judged by"),
        "compare_sessions": ratios,
        "compare_arms": tr("{0}, over the turns that both settings had").format(ratios),
        "sweep": tr("Tries settings on the audio of the next run, and finds those that no others beat"),
        "capacity": tr("Lets more and more streams share the cores until words are shown too late"),
    }
    return [Action(tr("Run"), f"run.{id}", text, do, "", can, help[id]) for id, text, do, can in tasks]


def _toggle(toggle: Toggle) -> Action:
    declared, group = toggle.declared, tr("Run")
    can = Condition(lambda: toggle.unavailable_reason)
    add = partial(Action, group, f"toggle.{toggle.key}", tr(declared.title), toggle.flip, declared.key, can)
    return add(checked=lambda: toggle.idle is None and toggle.on)


def _view(w: MainWindow) -> list[Action]:
    axis, playhead, jumps, step = w.axis, w.playhead, w.jumps, partial(partial, w.playhead.step)
    anytime = partial(Action, tr("View"))
    add = partial(anytime, enabled=w.when.has_session)
    again = partial(add, repeats=True)
    slow = tr("Selects the next frames that took longer than their audio (RTF above 1)")
    wrong = tr("Selects the next place where the recognised words differ from the reference")
    lab = tr("Experiments about the cost of recognition, each with its picture and verdict")
    sound, window = tr("Play the sound of the selection or utterance"), tr("Auto-scroll with the cursor")

    def scroll() -> None:
        (axis.fit if axis.windowed else axis.follow_window)()

    def change_theme() -> None:
        w.choose_theme("light" if theme().is_dark else "dark")

    return [
        add("view.pause", tr("Pause or play; a run goes on"), playhead.toggle, "Space"),
        anytime("view.live", tr("Back to live"), playhead.go_live, "L", w.when.is_live),
        add("view.sound", sound, w.sound.toggle, "P", checked=lambda: w.sound.playing),
        again("view.previous", tr("Previous utterance or marker"), step(-1), ","),
        again("view.next", tr("Next utterance or marker"), step(1), "."),
        *(
            again(f"jump.{name}", text, partial(to, direction), key, help=help)
            for name, text, to, direction, key, help in (
                ("violation", tr("Next real-time violation"), jumps.to_violation, 1, "V", slow),
                ("violation_back", tr("Previous real-time violation"), jumps.to_violation, -1, "Shift+V", slow),
                ("word_error", tr("Next word error"), jumps.to_word_error, 1, "X", wrong),
                ("word_error_back", tr("Previous word error"), jumps.to_word_error, -1, "Shift+X", wrong),
            )
        ),
        again("view.slower", tr("Replay slower"), lambda: w.desk.transport.change_speed(-1), "["),
        again("view.faster", tr("Replay faster"), lambda: w.desk.transport.change_speed(1), "]"),
        again("view.zoom_in", tr("Zoom in"), lambda: axis.zoom(1 / ZOOM_STEP), "W Ctrl++"),
        again("view.zoom_out", tr("Zoom out"), lambda: axis.zoom(ZOOM_STEP), "S Ctrl+-"),
        again("view.left", tr("Earlier"), lambda: axis.pan(-PAN_STEP), "A"),
        again("view.right", tr("Later"), lambda: axis.pan(PAN_STEP), "D"),
        add("view.fit", tr("Show everything"), axis.fit, "F 0"),
        add("view.window", window, scroll, "Shift+F", checked=lambda: axis.windowed),
        anytime("view.clear", tr("Clear the selection"), w.escape, "Esc"),
        anytime("page.welcome", tr("Welcome page"), w.show_welcome, "Alt+Home"),
        anytime("page.lab", tr("Lab: claims tried on this machine"), w.show_lab, "Alt+L", help=lab),
        anytime("theme.toggle", tr("Dark theme"), change_theme, "Ctrl+T", checked=lambda: theme().is_dark),
        anytime("theme.system", tr("Follow the system's theme"), partial(w.choose_theme, "system")),
    ]


def _help(w: MainWindow) -> list[Action]:
    add = partial(Action, tr("Help"))

    def show(name: str) -> None:
        from app.window import help_pages

        open_dialog(help_pages.PAGES[name](w))

    def open_folder() -> None:
        from app.window.notices import open_outside
        from profiler.files.paths import sessions_dir

        try:
            open_outside(sessions_dir())
        except OSError as error:
            w.notices.error(tr("Sessions cannot be written: {0}.").format(error.strerror or error))

    return [
        add("help.palette", tr("Commands…"), w.open_palette, "Ctrl+Shift+P"),
        add("help.keys", tr("Keys"), w.open_keys, "?"),
        add("help.terms", tr("Terms"), partial(show, "terms"), "F1"),
        add("help.doctor", tr("What works here"), partial(show, "doctor")),
        add("help.sessions", tr("Folder of sessions"), open_folder),
        add("help.about", tr("About asrscope"), partial(show, "about")),
    ]


def _selection(w: MainWindow) -> list[Action]:
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
