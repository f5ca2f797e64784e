"""One setting of the form: its title, the widget of its type, and what prevents it from acting.

Nothing here names a setting. A setting of type text holds a path, or the name of a file that ships with the
program if it allows that. If its key ends in *directory* or *folder*, it is a folder, otherwise a file.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from PySide6 import QtGui
from PySide6.QtCore import QEvent, QPointF, QRect, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QMenu, QVBoxLayout, QWidget

from app.layout import NONE, REST, lay_out, named, styled
from app.style.plain_text import Elided, Label, ToolButton, add_entry, describe, set_tip, set_titled_tip
from app.style.stylesheet import restyle
from app.style.theme import font, theme
from app.widgets import ChoiceBox, NumberBox, Switch
from pipelines.config import Option, Value, value_text
from profiler.files.inputs import regular

BUTTON = QSize(20, 19)


class PathBox(QLineEdit):
    """A path with a button for a file or `folder`; `names`: files that need no path; `suffixes`: of files to choose."""

    chosen = Signal(str)

    def __init__(self, folder: bool, title: str, names: Sequence[str] = (), suffixes: Sequence[str] = ()) -> None:
        super().__init__()
        self._folder, self._title, self._names, self._suffixes = folder, title, tuple(names), tuple(suffixes)
        self.path = ""
        self.setAcceptDrops(True)
        self.setPlaceholderText(self.tr("not set"))
        self.button = named(ToolButton(self), "path-button")
        self.button.setText("…")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        what = self.tr("Choose a folder…") if folder else self.tr("Choose a file…")
        set_tip(self.button, what)
        describe(self.button, f"{title}: {what}")
        self.button.clicked.connect(self._offer if names else self.choose)
        self.setTextMargins(0, 0, BUTTON.width() - 4, 0)
        self.editingFinished.connect(self._typed)

    def set_path(self, path: str) -> None:
        self.path = path
        self._show()

    def _offer(self) -> None:
        menu = self.offered()
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.button.mapToGlobal(self.button.rect().bottomLeft()))

    def offered(self) -> QMenu:
        menu = QMenu(self)
        for name in self._names:
            entry = add_entry(menu, name, partial(self._take, name))
            entry.setCheckable(True)
            entry.setChecked(name == self.path)
        menu.addSeparator()
        add_entry(menu, self.tr("A file…"), self.choose)
        return menu

    def choose(self) -> None:
        shipped = not self.path or self.path in self._names
        start = "" if shipped else str(Path(self.path).parent)
        if self._folder:
            found = QFileDialog.getExistingDirectory(self.window(), self._title, start)
        else:
            ends = " ".join(f"*{suffix}" for suffix in self._suffixes)
            wanted = self.tr("{0} ({1})").format(self._title, ends) if ends else ""
            found, _ = QFileDialog.getOpenFileName(self.window(), self._title, start, wanted)
        if found:
            self._take(found)

    def _typed(self) -> None:
        if self.hasFocus() or self.isModified():
            self._take(self.text().strip())

    def _take(self, path: str) -> None:
        changed = path != self.path
        self.set_path(path)
        if changed:
            self.chosen.emit(path)

    def _show(self) -> None:
        text = self.path
        if not self.hasFocus() and text:
            room = self.width() - BUTTON.width() - 18
            mode = Qt.TextElideMode.ElideMiddle
            text = self.fontMetrics().elidedText(Path(text).name, mode, max(room, 24))
        if text != self.text():
            self.setText(text)
        self.setCursorPosition(0)
        set_tip(self, self.path)

    def event(self, event: QEvent) -> bool:
        """Keys that its button leaves to others are the window's, and not typed into the path."""
        kinds = (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
        if event.type() in kinds and not self.hasFocus():
            event.ignore()
            return False
        return super().event(event)

    def focusInEvent(self, event: QtGui.QFocusEvent) -> None:
        super().focusInEvent(event)
        self._show()
        self.selectAll()

    def focusOutEvent(self, event: QtGui.QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._show()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        y = (self.height() - BUTTON.height()) // 2
        place = QRect(self.width() - BUTTON.width() - 3, y, BUTTON.width(), BUTTON.height())
        self.button.setGeometry(place)
        self._show()

    def dragEnterEvent(self, event: QtGui.QDragEnterEvent) -> None:
        self._dropped(event)

    def dropEvent(self, event: QtGui.QDropEvent) -> None:
        if path := self._dropped(event):
            self._take(path)

    def _dropped(self, event: QtGui.QDropEvent) -> str:
        """Accept one file or one folder, as `folder` says; its path, or nothing."""
        urls = event.mimeData().urls()
        path = urls[0].toLocalFile() if len(urls) == 1 else ""
        fits = bool(path) and (os.path.isdir(path) if self._folder else regular(Path(path)))
        event.setDropAction(Qt.DropAction.CopyAction)
        event.setAccepted(fits)
        return path if fits else ""


LONGEST_SUFFIX = 7  # Longer units are shown in the tool tip, not in the field
FIELD_WIDTH = 104
CHOICE_ROOM = 40  # Pixels of a choice for border, padding and arrow
ROW_HEIGHT = 29  # Pixels of a setting, whether it has something to say below its title or not: the rows do not jump
TWO_LINES = 0.9  # Size of a title that takes two lines of a row
FOLDERS = ("directory", "folder")


class Dot(QWidget):
    """The mark of a setting that can change during a run."""

    def __init__(self, live: bool) -> None:
        super().__init__()
        self._live = live
        self.setFixedSize(QSize(8, 12))
        if live:
            set_tip(self, self.tr("can change during a run"))

    def paintEvent(self, _event: QtGui.QPaintEvent) -> None:
        if not self._live:
            return
        with QtGui.QPainter(self) as painter:
            painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme().color("accent" if self.isEnabled() else "muted"))
            painter.drawEllipse(QPointF(3.5, 6.0), 2.6, 2.6)


class Title(Elided):
    """The name of a setting, on two lines where one has no room for it and the row has room for two."""

    def __init__(self, text: str) -> None:
        self._lines = 2
        super().__init__(text)

    def allow_lines(self, lines: int) -> None:
        if lines != self._lines:
            self._lines = lines
            self._shorten()

    def _shorten(self) -> None:
        one, two = font(), font(TWO_LINES)
        room = float(max(self.width(), 20))
        wide = QtGui.QFontMetricsF(one).horizontalAdvance(self.full) > room
        metrics = QtGui.QFontMetricsF(two)
        words = self.full.split(" ")
        halves = ((" ".join(words[:n]), " ".join(words[n:])) for n in range(len(words) - 1, 0, -1))
        fits = (h for h in halves if max(map(metrics.horizontalAdvance, h)) <= room)
        both = next(fits, None) if wide and self._lines > 1 else None
        self.setFont(one if both is None else two)
        self.setFixedHeight(self.fontMetrics().height() * (1 if both is None else 2))
        if both is None:
            super()._shorten()
        else:
            self.setText("\n".join(both))
            set_tip(self, "")


class Field(QWidget):
    """One setting: dot, title, the widget of its type, and notes below them."""

    edited = Signal(str, object)
    refused = Signal(str, str)  # Key, and why what was entered is not taken

    def __init__(self, option: Option, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.option = option
        self.unavailable_reason: str | None = None
        self._locked = False
        self._value: Value = option.default
        self.title = Title(self.tr(option.title))
        self.waiting, self.note, self.reason = Elided(self.tr("on next run")), Elided(), Label()
        self.reason.setWordWrap(True)
        for label in (self.waiting, self.note, self.reason):
            styled(label, 0.85, muted=True).hide()
        self.editor, self._show = self._make_editor()
        self.editor.setMaximumHeight(ROW_HEIGHT - 4)
        self.editor.setObjectName(f"option-{option.key}")
        describe(self.editor, self.tr(option.title))
        self.title.setBuddy(self.editor)
        words = lay_out(QVBoxLayout(), REST, self.title, self.waiting, REST, spacing=0, margins=NONE)
        line = QWidget(self)
        line.setFixedHeight(ROW_HEIGHT)
        parts = (Dot(option.live), (words, 1), self.editor)
        lay_out(QHBoxLayout(line), *parts, spacing=6, margins=NONE)
        for label in (self.note, self.reason):
            label.setIndent(14)  # under the title, behind the dot
        lay_out(QVBoxLayout(self), line, self.note, self.reason, spacing=0, margins=NONE)
        self._show_tip()

    def _show_tip(self) -> None:
        option = self.option
        parts = [option.help, *filter(None, [self.unavailable_reason])]
        if option.minimum is not None and option.maximum is not None:
            bounds = f"{option.minimum:g} … {option.maximum:g} {option.unit}".strip()
            parts.append(self.tr("Range: {0}").format(bounds))
        elif option.unit:
            parts.append(self.tr("Unit: {0}").format(option.unit))
        parts.append(self.tr("can change during a run") if option.live else self.tr("takes effect with the next run"))
        set_titled_tip(self, option.title, parts, f"--set {option.key}={value_text(self._value)}")
        describe(self.editor, description=f"{option.help} {self.unavailable_reason or ''}".strip())

    def _make_editor(self) -> tuple[QWidget, Callable[[Value], object]]:
        """The widget of its type, and what shows a value in it."""
        option = self.option
        sign, _, rest = option.unit.partition(" ")
        unit = sign if rest and not sign.isalnum() else option.unit  # of "× real time" the ×
        suffix = f" {unit}" if 0 < len(unit) <= LONGEST_SUFFIX else ""
        edited = partial(self.edited.emit, option.key)
        if option.type == "bool":
            switch = Switch(small=True)
            switch.toggled.connect(edited)
            return switch, lambda value: switch.setChecked(bool(value))
        if option.type == "choice":
            choice = ChoiceBox(self.tr(option.title), ((str(v), v) for v in option.choices))
            choice.activated.connect(lambda index: edited(choice.itemData(index)))
            choice.setFixedWidth(FIELD_WIDTH)
            return choice, lambda value: choice.setCurrentIndex(choice.findText(str(value)))
        if option.type in ("int", "float"):
            whole = option.type == "int"
            number = NumberBox(whole=whole)
            number.setRange(option.minimum or 0, option.maximum or 0)
            number.set_unit(suffix, {float(value): self.tr(word) for value, word in option.words.items()})
            number.steps = option.steps
            number.valueChanged.connect(lambda v: edited(int(v) if whole else v))
            number.refused.connect(self._refused)
            number.setFixedWidth(FIELD_WIDTH)
            return number, lambda value: number.setValue(float(value))
        path = PathBox(option.key.endswith(FOLDERS), self.tr(option.title), option.shipped(), option.suffixes)
        if option.like:  # a text that is no path
            path.setPlaceholderText(option.like)
            path.button.hide()
        path.chosen.connect(edited)
        path.setFixedWidth(FIELD_WIDTH)
        return path, lambda value: path.set_path(str(value))

    def _refused(self, text: str) -> None:
        """Say in which range a number must lie."""
        option = self.option
        sentence = self.tr("{0} must be a number from {1} to {2}; {3} is not taken.")
        ends = (f"{end:g}" for end in (option.minimum or 0, option.maximum or 0))
        self.refused.emit(option.key, sentence.format(self.tr(option.title), *ends, text))

    def show_value(self, value: Value) -> None:
        if value != self._value:
            self._value = value
            self._show_tip()
        with QSignalBlocker(self.editor):
            self._show(value)
        self.editor.update()

    def widen(self) -> None:
        """Make a choice as wide as its longest entry if there is room next to the title."""
        if isinstance(self.editor, ChoiceBox):
            metrics = self.editor.fontMetrics()
            texts = (self.editor.itemText(at) for at in range(self.editor.count()))
            widest = max(map(metrics.horizontalAdvance, texts), default=0)
            self.editor.setFixedWidth(max(FIELD_WIDTH, widest + CHOICE_ROOM))

    def show_waiting(self, waits: bool) -> None:
        self.waiting.setVisible(waits)
        self.title.allow_lines(1 if waits else 2)

    def show_acting(self, acts: bool) -> None:
        name = "" if acts and self.unavailable_reason is None else "muted"
        if name != self.title.objectName():
            self.title.setObjectName(name)
            restyle(self.title)

    def show_unavailable_reason(self, sentence: str | None, short: str) -> None:
        """Disable the setting if others prevent it from acting; `short` is shown below it, whole."""
        if sentence != self.unavailable_reason:
            self.unavailable_reason = sentence
            self._show_tip()
        self.editor.setEnabled(sentence is None and not self._locked)
        self.reason.setText(short)
        self.reason.setVisible(bool(short))

    def show_note(self, text: str, *shorter: str) -> None:
        """Show what the value amounts to, one of ``shorter`` where it has no room; an empty text shows nothing."""
        self.note.set_full(text, *shorter)
        self.note.setVisible(bool(text))

    def show_locked(self, locked: bool) -> None:
        self._locked = locked
        self.editor.setEnabled(self.unavailable_reason is None and not locked)

    def show_choices(self, reasons: Mapping[Value, str]) -> None:
        """Grey out unavailable choices, each with a sentence that says why."""
        model = self.editor.model() if isinstance(self.editor, ChoiceBox) else None
        if not isinstance(model, QtGui.QStandardItemModel):
            return
        for row, value in enumerate(self.option.choices):
            item, why = model.item(row), reasons.get(value, "")
            item.setEnabled(not why)
            set_tip(item, why)
            item.setData(why, Qt.ItemDataRole.AccessibleDescriptionRole)
