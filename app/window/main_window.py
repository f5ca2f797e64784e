"""The main window: connects the parts and responds to the actions; the work is done elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent, QDropEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.style.theme import set_theme
from app.window.first_window import FirstWindow, Skeleton
from profiler.plain import counted

if TYPE_CHECKING:
    from app.model.audio_choice import AudioChoice
    from app.model.recent import Memory
    from app.window.desk import Desk
    from app.window.lab.page import LabPage
    from app.window.palette import Palette
    from profiler.session.reader import Session

LOADED_LATER = (  # What figures and effects are worked out with
    "app.model.desk_snapshot",
    "app.model.alignment",
    "profiler.analysis.comparison.same_speech",
    "profiler.analysis.own_cost",
)


class MainWindow(FirstWindow):
    """The desk or the welcome page, between the top bar and the status line."""

    def __init__(self, worker: Sequence[str] | None = None, memory: Memory | None = None, bare: bool = False) -> None:
        """Make all of it, or with `bare` what is painted first; `worker`: command that decodes, None: our own."""
        super().__init__(memory)
        self._worker = worker
        if not bare:
            self.complete()

    def complete(self) -> None:
        from app.model.bookmarks import Bookmarks
        from app.model.conditions import Conditions
        from app.model.hints import Hints
        from app.model.history import History, Undo
        from app.model.pipeline import remembered
        from app.model.playhead import Playhead
        from app.model.processes.command import DeviceProbe
        from app.model.processes.run_control import WORKER
        from app.model.recorded_settings import RecordedSettings
        from app.model.runs import Runs
        from app.model.side_by_side import SideBySide
        from app.model.sound import Sound
        from app.model.time_axis import TimeAxis
        from app.window.actions.actions import Registry
        from app.window.actions.files import Files, SessionFiles
        from app.window.actions.model import ModelFolder
        from app.window.jumps import Jumps
        from app.window.layouts import LayoutChoice
        from app.window.notices import Notices, RunNotices
        from app.window.tasks.workbench import Workbench

        self.pipeline = remembered(self.memory.text("preset"), parent=self)
        self.devices = DeviceProbe(parent=self)
        self.devices.found.connect(self.pipeline.set_absent)
        self.axis = TimeAxis(self)
        self.playhead = Playhead(self.axis, self)
        self.history = History(self.playhead, self)
        self.jumps = Jumps(self.playhead, self)
        self.bookmarks = Bookmarks(self.playhead, self)
        self.notices = Notices()
        worker = self._worker or WORKER
        self.runs = Runs(self.pipeline, self.playhead, self.memory, worker, parent=self)
        self.recorded_settings = RecordedSettings(self.pipeline, self.playhead, self.runs.current, self)
        self.undo = Undo(self.pipeline, self.runs, self)
        RunNotices(self)
        self.files, self.session_files = Files(self), SessionFiles(self)
        self.when = Conditions(self.runs, self.playhead)
        self.model_folder = ModelFolder(self)
        self.bench = Workbench(self)
        self.hints = Hints(self.pipeline, self.runs, self.memory, parent=self)
        self.side_by_side = SideBySide(self.pipeline, self.runs, self.playhead, parent=self)
        self.layouts = LayoutChoice(self.memory, self)
        self.sound = Sound(self.playhead, parent=self)
        self.actions_ = Registry(self)
        self._build()
        self._connect()
        self.welcome.show_recent(self.memory.sessions())
        self.setFocus()  # at the start no button has it
        self.refresh()
        super().complete()

    def _build(self) -> None:
        from app.layout import NONE, lay_out, named
        from app.window.actions import commands
        from app.window.actions.actions import key_text
        from app.window.bars.menus import Menus
        from app.window.bars.statusline import StatusLine
        from app.window.bars.topbar import OtherPrograms, TopBar
        from app.window.notices import InputNotes
        from app.window.tasks.workbench import TaskStrip
        from app.window.updates import Updates
        from app.window.welcome import Welcome

        self.updates = Updates(self)
        self._palette: Palette | None = None
        self.made_desk: Desk | None = None  # The desk if it has been made
        self._lab: LabPage | None = None
        commands.register(self.actions_, self)
        page = named(QWidget(self), "desk")  # Top down, as in the desk
        self.top = TopBar(self.pipeline, self.actions_, self.axis)
        self.others = OtherPrograms()
        self.pages = QStackedWidget()
        column = lay_out(QVBoxLayout(page), self.top, self.others, (self.pages, 1), spacing=0, margins=NONE)
        self.welcome, self.skeleton = Welcome(self, self.pages), Skeleton()
        self.pages.addWidget(self.welcome)
        self.pages.addWidget(self.skeleton)
        self.status = StatusLine(self.tr("? keys · {0} commands").format(key_text("Ctrl+Shift+P")), self.hints)
        self.strip = TaskStrip(self.memory, self.notices, self.status, self.show_result)
        lay_out(column, self.notices, self.strip, self.status)
        self.setCentralWidget(page)
        InputNotes(self.playhead, self.notices)
        self.menus = Menus(self)
        self.menus.fill()

    @property
    def desk(self) -> Desk:
        """The desk, created on first use: its charts take longer to load than all the rest."""
        if self.made_desk is None:
            from app.window.actions import commands, exporting
            from app.window.actions.views import SCALE, SPEECH, cost_of
            from app.window.desk import Desk

            self.made_desk = desk = Desk(self.pipeline, self.playhead, self.actions_, self.pages)
            commands.register_views(self.actions_, self)
            desk.views["cost"].add_menu(self.tr("Scale"), [self.actions_[id] for id in SCALE])
            desk.views["words"].add_menu(self.tr("Show"), [self.actions_[id] for id in SPEECH])
            for name in LOADED_LATER:
                import_module(name)
            self.others.switch.toggled.connect(cost_of(self).set_other_programs)
            self.others.switch.toggled.connect(self.actions_.refresh)
            desk.form.speech.clicked.connect(lambda _=False: self.files.offer(desk.form.speech))
            desk.form.looked_at.connect(self.devices.ask)
            desk.form.which.asked.connect(self.recorded_settings.edit)
            desk.breakdown.explain.connect(partial(self.bench.begin, "replays.explain"))
            desk.breakdown.confirm.connect(partial(self.bench.begin, "replays.confirm"))
            desk.faster.tried.connect(partial(self.bench.begin, "replays.trial"))
            desk.exported.connect(partial(exporting.open_picture, self))
            desk.docks.rearranged.connect(self.actions_.refresh)
            desk.docks.offered = [self.actions_[a.id] for a in self.actions_ if a.id.startswith("go.")]
            self.pages.addWidget(desk)
            changed = self.pages.currentChanged
            changed.connect(lambda _: desk.docks.hide_floating(self.pages.currentWidget() is not desk))
            self.menus.fill()
            self.updates.show_latency()
            self.layouts.restore(desk)
            self.refresh()
        return self.made_desk

    def _connect(self) -> None:
        failures = self.playhead.failed, self.bookmarks.failed, self.layouts.refused, self.sound.failed
        own = self.axis.windowed_changed, self.axis.baseline_changed, self.pipeline.toggles.readiness_changed
        models = self.undo, self.history, self.side_by_side, self.sound
        all_of_it = self.playhead.mode_changed, *(m.changed for m in (self.recorded_settings, self.runs, self.strip))
        settings = self.pipeline.changed, self.pipeline.replaced
        for signals, do in (
            (failures, self.notices.error),
            ((*own, *settings, *(model.changed for model in models)), lambda *_: self.actions_.refresh()),
            (settings, lambda *_: self.updates.show_latency()),
            (all_of_it, self.refresh),
        ):
            for signal in signals:
                signal.connect(do)
        self.playhead.changed.connect(self.updates.show_snapshot)
        self.playhead.opened.connect(self._on_opened)
        self.playhead.closed.connect(self.updates.show_nothing)
        self.axis.visible_changed.connect(lambda *_: self.updates.show_scope())
        self.jumps.arrived.connect(self.status.show_message)
        self.bookmarks.changed.connect(self._register_again)
        self.layouts.changed.connect(self._register_again)
        self.runs.current.shown.connect(self.show_desk)
        self.runs.current.given_up.connect(self.show_welcome)
        self.pipeline.live_change.connect(self._on_live_change)
        self.pipeline.refused.connect(lambda _, text: self.notices.error(text))
        self.top.scope.left.connect(lambda: self.axis.choose_scope(None))
        self.top.preset.chosen.connect(self.runs.choose_preset)

    def run_preset(self, name: str) -> None:
        if not self.when.is_idle():
            self.show_desk()
        self.runs.choose_preset(name, demo=True)

    def use_bundled(self) -> None:
        from app.model import audio_choice

        if (bundled := audio_choice.bundled()) is not None:
            self.runs.next.choose(bundled)

    def take_audio(self, choice: AudioChoice) -> None:
        as_demo = self.runs.next.choose(choice)
        self.show_desk()
        files = counted(choice.files, self.tr("file"), self.tr("files"))
        if as_demo:
            files = self.tr("{0}, once and at full speed: loop and pace were the demo's").format(files)
        self.notices.next_run(self.tr("The next run decodes {0}.").format(files), self.runs, self.when.can_start())

    def open_session(self, path: str | Path) -> bool:
        return self.files.open_session(path)

    def close_session(self) -> None:
        """Close the session shown; that of a run under way only together with the run."""
        if self.runs.current.is_shown and not self.when.is_idle():
            stop = {self.tr("Stop and close"): partial(self.runs.finish_then, self.close_session)}
            self.runs.asked.emit(self.tr("Stop this run and close its session?"), stop | {self.tr("Cancel"): None})
            return
        self.playhead.close()
        if not self.when.is_idle():
            self.runs.current.show()
        if self.playhead.session is None:
            self.show_welcome()

    def show_welcome(self) -> None:
        self.welcome.show_recent(self.memory.sessions())
        self.pages.setCurrentWidget(self.welcome)

    def show_lab(self) -> None:
        """Show the Lab page, made on first use: the labs and their charts are not needed before."""
        if self._lab is None:
            from app.window.lab.page import LabPage

            self._lab = LabPage(lambda: not self.when.is_idle(), parent=self)
            self.runs.other_run = self._lab.runs.runs_unavailable_reason
            self._lab.open_session.connect(self.open_session)
            self._lab.changed.connect(self.actions_.refresh)
            self.pages.addWidget(self._lab)
        self.pages.setCurrentWidget(self._lab)

    def show_desk(self) -> None:
        self.pages.setCurrentWidget(self.desk)
        self.refresh()

    def show_setting(self, key: str) -> None:
        self.show_desk()
        self.desk.form.reveal(key)

    def escape(self) -> None:
        """Esc: back to the usual scope, or else clear a marked place or the stage, show all views, dismiss a notice."""
        if self.axis.selected is not None:
            self.axis.clear()
        elif self.axis.scope is not None:
            self.axis.choose_scope(None)
        elif self.axis.pointed is not None:
            self.axis.point_at(None)
        elif self.axis.stage is not None:
            self.axis.choose_stage(None)
        elif self.made_desk is not None and self.made_desk.docks.is_alone:
            self.made_desk.docks.toggle_alone()
        elif self.notices.banners and self.notices.banners[-1].kind != "progress":
            self.notices.remove(self.notices.banners[-1])

    def choose_theme(self, name: str) -> None:
        set_theme(name)
        self.memory.remember("theme", name)
        self.actions_.refresh()

    def open_palette(self) -> None:
        if self._palette is None:
            from app.window.actions import search_results
            from app.window.palette import Palette

            self._palette = Palette(self.actions_, self, partial(search_results.presets_and_settings, self))
        self._palette.open_over(self)

    def open_keys(self) -> None:
        from app.style.plain_text import open_dialog
        from app.window.palette import KeySheet

        open_dialog(KeySheet(self.actions_, self))

    def show_result(self, page: QWidget, asked: bool) -> bool:
        """Show the page of a task, on another page of the window only if somebody asks for it; whether it is shown."""
        shown = asked or (self.made_desk is not None and self.pages.currentWidget() is self.made_desk)
        if shown:
            self.show_desk()
            self.desk.show_result(page)
        return shown

    def open_export(self) -> None:
        self.actions_.refresh()
        self.menus.open_export(self.desk.transport.export)

    def refresh(self) -> None:
        self.updates.refresh()

    def _register_again(self) -> None:
        """Bring the actions about layouts and bookmarks up to date, which somebody made or deleted."""
        if self.made_desk is not None:
            from app.window.actions.commands import register_bookmarks
            from app.window.actions.views import register_layouts

            register_bookmarks(self.actions_, self)
            register_layouts(self.actions_, self)
            self.menus.fill()
            self.actions_.refresh()

    def _on_opened(self, session: Session) -> None:
        if session.configs and self.when.is_idle():
            preset = str(session.meta.get("preset", ""))
            self.pipeline.adopt(session.configs[-1].tree, preset, session.path)
        self.pages.setCurrentWidget(self.desk)
        self.refresh()

    def _on_live_change(self, key: str, _value: object) -> None:
        if self.side_by_side.active:
            from pipelines import config

            text = self.tr("{0} waits for the end of this turn: then the A/B ends, and the change acts.")
            self.status.show_message(text.format(self.tr(config.option(key).title)))

    def focusNextPrevChild(self, forward: bool) -> bool:
        """First to a question that waits; from a widget that is gone to none: Stop would be pressed after Run."""
        focus = self.focusWidget()
        if not self.is_complete:
            return False
        if focus is not None and not (focus.isEnabled() and focus.isVisible()):
            self.setFocus()
            return True
        answer = self.notices.first_answer()
        if forward and answer is not None and focus in (None, self):
            answer.setFocus(Qt.FocusReason.TabFocusReason)
            return True
        return super().focusNextPrevChild(forward)

    def dropEvent(self, event: QDropEvent) -> None:
        paths = [Path(u.toLocalFile()) for u in event.mimeData().urls() if u.isLocalFile()]
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        self.files.drop(paths)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Save the layout and end the worker so that its session is complete."""
        self.memory.remember_state("geometry", self.saveGeometry())
        event.accept()
        if not self.is_complete:
            return
        self.layouts.remember()
        if self.made_desk is not None:
            self.made_desk.docks.hide_floating()
        self.memory.remember("preset", self.pipeline.preset.name)
        self.hide()
        self.sound.stop()
        self.runs.control.shutdown()
        self.session_files.finish()
        self.model_folder.end()
        if self._lab is not None:
            self._lab.shutdown()
        self.devices.stop()
        self.playhead.close()
