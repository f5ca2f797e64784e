"""Non-modal notices below the page: one sentence about what went wrong, or the progress of long work.

A notice takes no focus, interrupts nothing and covers nothing: the page makes room for it at its lower end. At most
``MAX_NOTICES`` are shown. Errors have a report to copy; a written file can be opened, shown in its folder, and its path
copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from app.layout import lay_out, styled
from app.model.pace import single_shot
from app.model.playhead import Playhead
from app.style.plain_text import Button, Label, Wrapped, describe, displayable
from profiler.plain import one_line

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from app.model.runs import Runs
    from app.window.main_window import MainWindow
    from profiler.session.reader import Session


Kind = Literal["info", "error", "progress", "question"]
MAX_NOTICES = 3
INFO_MS = 8000  # A remark disappears after this time; errors stay until dismissed
WRITTEN_MS = 20_000  # A written file can be opened from its notice for so long


class Banner(QFrame):
    """One notice: text, buttons, and a progress bar for long work."""

    dismissed = Signal()

    def __init__(self, kind: Kind, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = kind
        self.setObjectName("banner")
        self.setProperty("kind", kind)
        describe(self, text)
        self._text = Wrapped(text)
        sign = styled(Label({"error": "!", "info": "i", "progress": "…", "question": "?"}[kind]), 1.1, strong=True)
        if kind == "error":
            sign.setObjectName("danger-text")
        sign.setFixedWidth(12)
        self._row = lay_out(QHBoxLayout(self), sign, (self._text, 1), spacing=8, margins=(12, 7, 8, 7))
        self.bar: QProgressBar | None = None
        if kind == "progress":
            self.bar = QProgressBar(minimum=0, maximum=0, textVisible=False)
            self.bar.setFixedSize(220, 8)
            describe(self.bar, self.tr("Progress"))
            self._row.addWidget(self.bar)
        elif kind != "question":
            self.add_button(self.tr("Dismiss"), self.dismiss)

    @property
    def text(self) -> str:
        return self._text.text()

    def add_button(self, text: str, do: Callable[[], object]) -> Button:
        """Add a button before the existing ones."""
        button = Button(text, do)
        first = self._row.indexOf(self._text) + (2 if self.bar is not None else 1)
        self._row.insertWidget(first, button)
        return button

    def add_answer(self, text: str, do: Callable[[], object] | None) -> None:
        """Add an answer to a question, after those that are there; giving it removes the notice."""
        button = Button(text, self.dismiss)
        if do is not None:
            button.clicked.connect(lambda _=False: do())
        self._row.addWidget(button)
        button.show()  # at once: Tab goes to it

    def set_progress(self, text: str, fraction: float | None) -> None:
        """Show the progress of long work; ``None`` if it is unknown."""
        self._text.setText(text)
        describe(self, text)
        if self.bar is not None:
            self.bar.setRange(0, 0 if fraction is None else 1000)
            self.bar.setValue(round(1000 * min(max(fraction or 0.0, 0.0), 1.0)))

    def dismiss(self) -> None:
        self.dismissed.emit()


class Notices(QWidget):
    """The stack of notices; takes no space while empty."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("notices")
        self.banners: list[Banner] = []
        self._layout = lay_out(QVBoxLayout(self), spacing=6, margins=(10, 0, 10, 6))
        self.hide()

    def first_answer(self) -> Button | None:
        """The first choice of the newest question, or None."""
        question = next((banner for banner in reversed(self.banners) if banner.kind == "question"), None)
        return None if question is None else question.findChild(Button)

    def info(self, text: str, stays_ms: int | None = None) -> Banner:
        """Show a remark, for `stays_ms` (INFO_MS if not given)."""
        banner = self._show(Banner("info", text, self))
        single_shot(banner, stays_ms or INFO_MS, banner.dismiss).start()
        return banner

    def next_run(self, text: str, runs: Runs, can_start: bool) -> None:
        """Show a remark about the next run, which can be started there; once one has begun, it speaks of another."""
        banner = self.info(text)
        if can_start:
            banner.add_button(self.tr("Run"), runs.start)
        runs.begun.connect(banner.dismiss)

    def written(self, path: Path) -> Banner:
        banner = self.info(self.tr("Written: {0}").format(path), WRITTEN_MS)
        banner.add_button(self.tr("Copy"), lambda: QGuiApplication.clipboard().setText(str(path)))
        banner.add_button(self.tr("Show in folder"), lambda: open_outside(path.parent))
        banner.add_button(self.tr("Open"), lambda: open_outside(path))
        return banner

    def error(self, text: str, report: str = "") -> Banner:
        """Show one sentence about what went wrong; a button copies ``report``."""
        for banner in self.banners:
            if banner.kind == "error" and banner.text == displayable(text):
                return banner
        banner = self._show(Banner("error", text, self))
        if report:
            banner.add_button(self.tr("Copy report"), lambda: QGuiApplication.clipboard().setText(report))
        return banner

    def attempt(self, do: Callable[[], object]) -> bool:
        """Do something; where that fails, say why. Whether it was done."""
        try:
            do()
        except (OSError, ValueError) as error:
            self.error(str(error))
            return False
        return True

    def ask(self, text: str, answers: Mapping[str, Callable[[], object] | None]) -> Banner:
        """Ask a question; each answer with what it does."""
        banner = self._show(Banner("question", text, self))
        for answer, do in answers.items():
            banner.add_answer(answer, do)
        return banner

    def progress(self, text: str, cancel: Callable[[], object] | None = None) -> Banner:
        banner = Banner("progress", text, self)
        if cancel is not None:
            banner.add_button(self.tr("Cancel"), cancel)
        return self._show(banner)

    def remove(self, banner: Banner) -> None:
        """Remove one notice (it may already be gone)."""
        if banner not in self.banners:
            return
        self.banners.remove(banner)
        self._layout.removeWidget(banner)
        banner.hide()
        banner.deleteLater()
        self.setVisible(bool(self.banners))

    def clear(self, kind: Kind | None = None) -> None:
        for banner in list(self.banners):
            if kind is None or banner.kind == kind:
                self.remove(banner)

    def _show(self, banner: Banner) -> Banner:
        while len(self.banners) >= MAX_NOTICES:
            free = (b for b in self.banners if b.kind in ("info", "error"))
            self.remove(next(free, self.banners[0]))
        self.banners.append(banner)
        self._layout.addWidget(banner)
        banner.dismissed.connect(lambda: self.remove(banner))
        self.show()
        return banner


class RunNotices(QObject):
    """Shows the set-up of a run, its problems, and the question what becomes of it."""

    def __init__(self, w: MainWindow) -> None:
        super().__init__(w.runs)
        runs, notices = w.runs, w.notices
        self._w, self._runs, self._notices = w, runs, notices
        self._set_up: Banner | None = None
        self._question: Banner | None = None
        runs.begun.connect(lambda: notices.clear("error"))
        runs.current.remarked.connect(notices.info)
        runs.current.failed.connect(self._show_failure)
        runs.current.died.connect(self._show_death)
        runs.current.set_up.changed.connect(self._show_set_up)
        runs.current.set_up.ended.connect(self._end_set_up)
        runs.asked.connect(self._ask)
        runs.question_dropped.connect(self._drop_question)

    def _show_set_up(self, text: str, share: float | None) -> None:
        if self._set_up is None:
            self._set_up = self._notices.progress("", self._runs.stop)
        self._set_up.set_progress(text, share)

    def _end_set_up(self) -> None:
        if self._set_up is not None:
            self._notices.remove(self._set_up)
            self._set_up = None

    def _ask(self, text: str, answers: Mapping[str, Callable[[], object] | None]) -> None:
        self._drop_question()
        self._question = self._notices.ask(text, answers)

    def _drop_question(self) -> None:
        if self._question is not None:
            self._notices.remove(self._question)
            self._question = None

    def _show_failure(self, text: str, report: str) -> None:
        """Say what is wrong; where the sentence names a setting in brackets, a button leads to it."""
        banner = self._notices.error(text, report)
        for option in self._w.pipeline.options:
            if f"({option.key})" in text:
                banner.add_button(f"{self.tr(option.title)}…", partial(self._w.show_setting, option.key))

    def _show_death(self, text: str, report: str) -> None:
        banner = self._notices.error(text, report)
        banner.add_button(self.tr("Restart"), banner.dismiss).clicked.connect(self._runs.restart)


def open_outside(path: Path) -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.resolve())))


AT_ONCE = 3  # Sentences in one notice; the words view, `asrscope show` and the report have them all


class InputNotes(QObject):
    """Shows notes of the session that a playhead has, each once, and why its run failed."""

    def __init__(self, playhead: Playhead, notices: Notices) -> None:
        super().__init__(playhead)
        self._notices = notices
        self._seen: set[str] = set()
        self._counted = (0, 0)
        playhead.opened.connect(self._opened)
        playhead.changed.connect(self._follow)

    def _opened(self, session: Session) -> None:
        self._seen, self._counted = set(), (0, 0)
        if problem := session.meta.get("problem"):
            self._notices.error(self.tr("The run of this session failed: {0}").format(one_line(str(problem), 1000)))

    def _follow(self, snapshot: Snapshot) -> None:
        session = snapshot.session
        general = session.meta.get("notes") or []
        counted = (len(general), len(session.utterances))
        if counted == self._counted:
            return
        new = [*general[self._counted[0] :]]
        for utterance in session.utterances[self._counted[1] :]:
            new += [f"{utterance.name}: {note}" for note in utterance.notes if note not in self._seen]
            self._seen.update(utterance.notes)
        self._counted = counted
        if new:
            more = self.tr("and {0} more").format(len(new) - AT_ONCE)
            self._notices.info("\n".join([*new[:AT_ONCE], *([more] if len(new) > AT_ONCE else [])]))
