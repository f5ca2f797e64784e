"""What the window shows of session, scope and run: titles, buttons, figures in its bars and notes in the form."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from profiler.clock import FRAME_S

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "Updates")


class Updates:
    """Brings up to date what the main window `w` shows."""

    def __init__(self, w: MainWindow) -> None:
        self._w = w
        self._snapshot: Snapshot | None = None

    def refresh(self) -> None:
        from app.style.plain_text import set_title

        w, desk = self._w, self._w.made_desk
        path, session = w.playhead.path, w.playhead.session
        w.actions_.refresh()
        self._show_recording()
        if desk is not None:
            from app.model import audio_choice

            form, at = desk.form, w.recorded_settings
            if session is None or at.editing:
                form.show_speech(w.runs.next.audio, w.runs.audio_waits)
            else:
                form.show_speech(audio_choice.recorded(session), recorded=True)
            form.which.show_which(at.editing, at.offered, not w.when.is_idle())
        w.top.show_lab(session is not None and not (w.playhead.live or session.configs))
        names = [] if path is None else [path.stem]
        if w.playhead.live and not w.runs.current.is_shown:
            names.append(tr("recorded by another process"))
        set_title(w, " – ".join([*names, "asrscope"]))

    def _show_recording(self) -> None:
        w = self._w
        if w.playhead.live:
            w.top.show_recording(w.playhead.n_frames * FRAME_S)
        else:
            w.top.show_recording(float("nan") if w.when.is_running() else None)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        shown = self._snapshot
        self._snapshot = snapshot
        if shown is None or shown.desk is not snapshot.desk or not snapshot.moving:
            self._show_figures(snapshot)

    def _show_figures(self, snapshot: Snapshot) -> None:
        w, desk = self._w, self._w.made_desk
        w.top.show_desk(snapshot.desk)
        if desk is not None:
            desk.docks.show_concerned(snapshot.session)
            desk.form.show_arm(snapshot.desk.arm if snapshot.live else {})  # type: ignore[arg-type]  # of a file
        w.others.show_share(snapshot.desk.other_share)
        w.status.show_snapshot(snapshot)
        self.show_scope()
        self._show_recording()
        self.show_latency()

    def show_scope(self) -> None:
        if self._snapshot is not None:
            first, last = self._w.axis.visible
            scope = self._snapshot.desk.scope
            before, after = scope.last * FRAME_S <= first, scope.first * FRAME_S >= last
            self._w.top.scope.show_direction(-1 if before else 1 if after else 0)

    def show_latency(self) -> None:
        """Show the model folder, and at the block size the wait of its first frame, measured if the settings agree."""
        w, desk = self._w, self._w.made_desk
        if desk is None:
            return
        desk.form.show_model(w.model_folder.about())
        from app.model import latency

        chosen = w.pipeline.chosen(latency.NET_KEY)
        parts = latency.of_both(w.pipeline.in_force, self._snapshot, chosen).as_dict()
        desk.form.fields[latency.BLOCK_KEY].show_note(*latency.texts(parts))

    def show_nothing(self) -> None:
        w = self._w
        self._snapshot = None
        w.top.show_desk(None)
        w.others.show_share(0.0)
        self.show_latency()
        w.status.show_snapshot(None)
        self.refresh()
