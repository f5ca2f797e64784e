"""The first page: run the demo, choose a preset and speech, or open a recent session."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QMenu, QSizePolicy, QVBoxLayout, QWidget

import assets
from app.layout import NONE, REST, Scrolled, heading, lay_out, muted, named, styled, wrapped
from app.model.pipeline import missing_file
from app.model.recent import SESSION_SUFFIX
from app.style.plain_text import Button, Elided, Label, add_entry, describe, new_menu, set_tip
from app.window.actions.actions import ActionButton
from pipelines.config import presets

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

CONTENT_WIDTH = 920
MEGABYTE = 1e6
RECENT = "recent-session"  # Name of the rows that are the user's own sessions


class Choice(Button):
    """A large button of two lines."""

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.setProperty("choice", True)
        describe(self, title, text)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        labels = styled(Label(title), 1.08, strong=True), wrapped(text)
        lay_out(QVBoxLayout(self), *labels, spacing=3, margins=(14, 10, 14, 11))
        for label in labels:
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        layout = self.layout()
        return 0 if layout is None else layout.heightForWidth(width)

    def sizeHint(self) -> QSize:
        width = max(self.width(), 200)
        return QSize(200, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


class SessionRow(Button):
    """A session, which a click opens; one that can be renamed has F2 and a menu."""

    rename = Signal()

    def __init__(self, renames: bool) -> None:
        super().__init__()
        self._renames = renames

    def event(self, event: QEvent) -> bool:
        """Keep F2 from the action of the window, which is about the session shown."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._is_rename(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._is_rename(event):
            self.rename.emit()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if self._renames:
            self.menu().popup(event.globalPos())

    def menu(self) -> QMenu:
        menu = new_menu("", self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        add_entry(menu, self.tr("Open"), self.click)
        add_entry(menu, self.tr("Rename…"), self.rename.emit)
        return menu

    def _is_rename(self, event: QKeyEvent) -> bool:
        return self._renames and event.key() == Qt.Key.Key_F2


class Welcome(Scrolled):
    """Everything needed for a first start on one page; what is unavailable is not shown."""

    def __init__(self, w: MainWindow, parent: QWidget) -> None:
        super().__init__(parent=parent)
        self.setObjectName("welcome")
        self._w = w
        page = named(QWidget(), "scrolled")
        self.setWidget(page)
        content = QWidget(page, maximumWidth=CONTENT_WIDTH)
        lay_out(QHBoxLayout(page), REST, (content, 100), REST)
        lead = self.tr(
            "Where does the time of a speech recogniser go, and what would make it faster? "
            "Run one, watch the cost of every 10 ms frame, and turn its tricks on and off while "
            "it runs."
        )
        hint = self.tr(
            "The demo decodes synthetic voices that ship with the program. Audio files and "
            "sessions can also be dropped on the window."
        )
        starts = (
            self._start_button("run.demo", self.tr("Run the demo"), True),
            self._start_button("file.new", self.tr("Run on my audio…")),
            self._start_button("file.open", self.tr("Open a session…")),
            self._start_button("page.lab", self.tr("Lab")),
        )
        title, row = styled(Label("asrscope"), 2.6, strong=True), lay_out(QHBoxLayout(), *starts, REST, spacing=8)
        parts = (REST, title, wrapped(lead, 1.12), 14, row, wrapped(hint), 18, self._halves(), (0, 3))
        lay_out(QVBoxLayout(content), *parts, spacing=8, margins=(24, 34, 24, 24))

    def _halves(self) -> QBoxLayout:
        """Presets to run with on the left, recent sessions and series of presets on the right."""
        choices = map(self._choice, presets.names(""))
        left = lay_out(QVBoxLayout(), heading(self.tr("Run the demo with")), *choices, REST, spacing=8)
        self._recent = lay_out(QVBoxLayout(), spacing=2)
        samples = (self._session_row(path, "sample-session", _size(path.stat().st_size)) for path in sample_sessions())
        right = lay_out(
            QVBoxLayout(),
            *(heading(self.tr("Recent sessions")), self._recent, 18),
            *(heading(self.tr("Recorded on other machines")), *samples),
            spacing=8,
        )
        for group in presets.groups():
            lay_out(right, 18, heading(self.tr(group)), *self._group(group))
        right.addStretch(1)
        return lay_out(QHBoxLayout(), (left, 1), (right, 1), spacing=28)

    def _choice(self, preset_name: str) -> Choice:
        preset = presets.load(preset_name)
        why = missing_file(preset.config)
        choice = Choice(self.tr(preset.title), why or self.tr(preset.description))
        choice.setEnabled(why is None)
        choice.setObjectName(f"preset-{preset_name}")
        choice.clicked.connect(lambda: self._w.run_preset(preset_name))
        return choice

    def _group(self, group: str) -> tuple[QWidget, QWidget]:
        """Presets of one group, behind a button that unfolds them: made when they are first shown."""
        names = presets.names(group)
        more, members = named(Button(), "presets-more", quiet=True), named(QWidget(), "scrolled")
        more.setCheckable(True)

        def unfold(shown: bool) -> None:
            if shown and members.layout() is None:
                lay_out(QVBoxLayout(members), *map(self._choice, names), spacing=8, margins=NONE)
            members.setVisible(shown)
            more.setText(self.tr("{0} presets {1}").format(len(names), "▴" if shown else "▾"))

        more.toggled.connect(unfold)
        unfold(False)
        return more, members

    def _start_button(self, action_id: str, text: str, primary: bool = False) -> Button:
        button = styled(ActionButton(self._w.actions_[action_id], text, name=text), 1.1, strong=True)
        button.setMinimumHeight(38)
        button.setObjectName(f"start-{action_id}")
        button.setProperty("primary", primary)
        return button

    def show_recent(self, sessions: list[Path]) -> None:
        while (item := self._recent.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        rows: list[QWidget] = [self._session_row(path, RECENT, _about(path)) for path in sessions]
        lay_out(self._recent, *rows or [muted(self.tr("None yet. Every run is saved here."))])

    def _session_row(self, path: Path, kind: str, details: str) -> Button:
        button = SessionRow(renames=kind == RECENT)
        button.rename.connect(lambda: self._w.session_files.ask_name(path))
        named(button, kind, quiet=True)
        describe(button, self.tr("Open {0}").format(path.name))
        set_tip(button, str(path))
        button.setMinimumHeight(34)
        name, about = Elided(path.stem), muted(details)
        lay_out(QHBoxLayout(button), (name, 1), about, margins=(10, 3, 10, 3))
        for label in (name, about):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        button.clicked.connect(lambda _=False: self._w.open_session(path))
        return button


def sample_sessions() -> list[Path]:
    return sorted(assets.path("samples").glob(f"*{SESSION_SUFFIX}"))


def _about(path: Path) -> str:
    try:
        stat = path.stat()
        day = datetime.fromtimestamp(stat.st_mtime).strftime("%Y-%m-%d %H:%M")
    except (OSError, ValueError, OverflowError):  # gone, or a date that no calendar has
        return ""
    return f"{day} · {_size(stat.st_size)}"


def _size(count: int) -> str:
    return f"{count / MEGABYTE:.1f} MB"
