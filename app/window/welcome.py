"""The first page: run the demo, choose a preset and speech, or open a recent session."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

import assets
from app.model.pipeline import Pipeline, missing_file
from app.model.recent import SESSION_SUFFIX
from app.style.plain_text import Button, Label, describe, set_tip
from app.style.theme import font
from app.widgets import Elided, Scrolled, heading, muted, wrapped
from app.window.actions.actions import Registry
from app.window.actions.button import ActionButton
from app.window.notices import AT_LOWER_END
from pipelines.config import presets

CONTENT_WIDTH = 920
MEGABYTE = 1e6


class Choice(Button):
    """A large button of two lines."""

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.setProperty("choice", True)
        describe(self, title)
        describe(self, description=text)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        name = Label(title)
        name.setFont(font(1.08, strong=True))
        about = wrapped(text)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 10, 14, 11)
        layout.setSpacing(3)
        layout.addWidget(name)
        layout.addWidget(about)
        for label in (name, about):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            label.setStyleSheet("background: transparent;")

    def hasHeightForWidth(self) -> bool:
        """The second line wraps."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of the wrapped text."""
        layout = self.layout()
        return 0 if layout is None else layout.heightForWidth(width)

    def sizeHint(self) -> QSize:
        """The size of the wrapped text at the current width."""
        width = max(self.width(), 200)
        return QSize(200, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        """At least as high as the text."""
        return self.sizeHint()


class Welcome(Scrolled):
    """Everything needed for a first start on one page; what is unavailable is not shown."""

    run_preset = Signal(str)
    open_session = Signal(str)

    def __init__(self, pipeline: Pipeline, actions: Registry) -> None:
        super().__init__()
        self.setObjectName("welcome")
        self.setProperty(AT_LOWER_END, True)
        self._actions = actions
        page = QWidget()
        page.setObjectName("scrolled")
        content = QWidget()
        content.setMaximumWidth(CONTENT_WIDTH)
        centre = QHBoxLayout(page)
        centre.addStretch(1)
        centre.addWidget(content, 100)
        centre.addStretch(1)
        column = QVBoxLayout(content)
        column.setContentsMargins(24, 34, 24, 24)
        column.setSpacing(8)
        column.addStretch(1)
        self._add_lead(column)
        column.addSpacing(14)
        self._add_starts(column)
        column.addSpacing(18)
        self._add_halves(column)
        column.addStretch(3)
        self.setWidget(page)

    def _add_lead(self, column: QVBoxLayout) -> None:
        title = Label("asrscope")
        title.setFont(font(2.6, strong=True))
        lead = self.tr(
            "Where does the time of a speech recogniser go, and what would make it faster? "
            "Run one, watch the cost of every 10 ms frame, and turn its tricks on and off while "
            "it runs."
        )
        column.addWidget(title)
        column.addWidget(wrapped(lead, 1.12))

    def _add_starts(self, column: QVBoxLayout) -> None:
        starts = QHBoxLayout()
        starts.setSpacing(8)
        for action_id, name, primary in (
            ("run.demo", self.tr("Run the demo"), True),
            ("file.new", self.tr("Run on my audio…"), False),
            ("file.open", self.tr("Open a session…"), False),
            ("page.lab", self.tr("Lab"), False),
        ):
            starts.addWidget(self._start_button(action_id, name, primary))
        starts.addStretch(1)
        column.addLayout(starts)
        hint = self.tr(
            "The demo decodes synthetic voices that ship with the program. Audio files and "
            "sessions can also be dropped on the window."
        )
        column.addWidget(wrapped(hint))

    def _add_halves(self, column: QVBoxLayout) -> None:
        """Presets to run with on the left, recent sessions and series of presets on the right."""
        halves = QHBoxLayout()
        halves.setSpacing(28)
        left, right = QVBoxLayout(), QVBoxLayout()
        for half in (left, right):
            half.setSpacing(8)
        left.addWidget(heading(self.tr("Run the demo with")))
        for preset_name in presets.names(""):
            left.addWidget(self._choice(preset_name))
        left.addStretch(1)
        right.addWidget(heading(self.tr("Recent sessions")))
        self._recent = QVBoxLayout()
        self._recent.setSpacing(2)
        right.addLayout(self._recent)
        right.addSpacing(18)
        right.addWidget(heading(self.tr("Recorded on other machines")))
        for path in sample_sessions():
            right.addWidget(self._session_row(path, "sample-session", _size(path.stat().st_size)))
        for group in presets.groups():
            right.addSpacing(18)
            self._add_group(right, group)
        right.addStretch(1)
        halves.addLayout(left, 1)
        halves.addLayout(right, 1)
        column.addLayout(halves)

    def _choice(self, preset_name: str) -> Choice:
        preset = presets.load(preset_name)
        why = missing_file(preset.config)
        choice = Choice(self.tr(preset.title), why or self.tr(preset.description))
        choice.setEnabled(why is None)
        choice.setObjectName(f"preset-{preset_name}")
        choice.clicked.connect(lambda: self.run_preset.emit(preset_name))
        return choice

    def _add_group(self, column: QVBoxLayout, group: str) -> None:
        """Presets of one group, behind a button that unfolds them."""
        column.addWidget(heading(self.tr(group)))
        names = presets.names(group)
        more = Button()
        more.setObjectName("presets-more")
        more.setProperty("quiet", True)
        more.setCheckable(True)
        members = QWidget()
        members.setObjectName("scrolled")
        rows = QVBoxLayout(members)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(8)
        for name in names:
            rows.addWidget(self._choice(name))

        def unfold(shown: bool) -> None:
            members.setVisible(shown)
            text = self.tr("{0} presets, step by step {1}")
            more.setText(text.format(len(names), "▴" if shown else "▾"))

        more.toggled.connect(unfold)
        unfold(False)
        column.addWidget(more)
        column.addWidget(members)

    def _start_button(self, action_id: str, text: str, primary: bool) -> Button:
        button = ActionButton(self._actions[action_id], text, name=text)
        button.setFont(font(1.1, strong=True))
        button.setMinimumHeight(38)
        button.setObjectName(f"start-{action_id}")
        button.setProperty("primary", primary)
        return button

    def show_recent(self, sessions: list[Path]) -> None:
        """List recent sessions; say so when there are none."""
        while self._recent.count():
            item = self._recent.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        if not sessions:
            self._recent.addWidget(muted(self.tr("None yet. Every run is saved here.")))
            return
        for path in sessions:
            self._recent.addWidget(self._session_row(path, "recent-session", _about(path)))

    def _session_row(self, path: Path, kind: str, told: str) -> Button:
        button = Button()
        button.setProperty("quiet", True)
        button.setObjectName(kind)
        describe(button, self.tr("Open {0}").format(path.name))
        set_tip(button, str(path))
        button.setMinimumHeight(34)
        name = Elided(path.stem)
        about = muted(told)
        row = QHBoxLayout(button)
        row.setContentsMargins(10, 3, 10, 3)
        row.addWidget(name, 1)
        row.addWidget(about)
        for label in (name, about):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        button.clicked.connect(lambda _=False: self.open_session.emit(str(path)))
        return button


def sample_sessions() -> list[Path]:
    """Sessions that ship with the program, by name."""
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
