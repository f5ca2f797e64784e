"""The command palette, which also finds settings, and the key sheet; both read the registry of actions."""

from collections.abc import Callable
from itertools import count
from typing import Final

from PySide6 import QtWidgets
from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QShowEvent

from app.layout import NONE, REST, heading, lay_out, named, new_grid, styled
from app.style.plain_text import ENTER, Button, Label, describe, set_tip, set_title, write
from app.style.theme import font, theme
from app.window.actions import search_results
from app.window.actions.actions import Registry, key_text
from app.window.actions.search_results import SearchResult

WIDTH, MAX_ROWS, ROW_HEIGHT = 560, 11, 30
COLUMNS = 3
WIDEST = 205  # Pixels of a text in the key sheet: a longer one goes on in the next line
RESULT_ROLE = Qt.ItemDataRole.UserRole  # The `SearchResult` of an item, if it is one
_Index = QModelIndex | QPersistentModelIndex


class ActionDelegate(QtWidgets.QStyledItemDelegate):
    """One line of the palette: text, group, keys on the right."""

    def sizeHint(self, option: QtWidgets.QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(200, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QtWidgets.QStyleOptionViewItem, index: _Index) -> None:
        tokens = theme()
        area = option.rect.adjusted(2, 1, -2, -1)
        chosen = bool(option.state & QtWidgets.QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if chosen:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(tokens.color("accent"))
            painter.drawRoundedRect(area, 5, 5)
        text = area.adjusted(10, 0, -10, 0)
        name, middle = str(index.data()), Qt.AlignmentFlag.AlignVCenter
        line: SearchResult | None = index.data(RESULT_ROLE)
        usable = line is None or line.usable
        loud = tokens.color("on_accent" if chosen else "text" if usable else "muted")
        quiet = tokens.color("on_accent" if chosen else "muted")
        painter.setFont(font())
        painter.setPen(loud)
        write(painter, text, middle | Qt.AlignmentFlag.AlignLeft, name)
        if line is not None:
            metrics = painter.fontMetrics()
            left, right = (metrics.horizontalAdvance(part) + 10 for part in (name, line.beside))
            room = text.adjusted(left, 0, -right, 0)
            group = line.group if usable else f"{line.group} · {line.why}"
            group = metrics.elidedText(group, Qt.TextElideMode.ElideRight, room.width())
            painter.setPen(quiet)
            write(painter, room, middle | Qt.AlignmentFlag.AlignLeft, group)
            write(painter, text, middle | Qt.AlignmentFlag.AlignRight, line.beside)
        painter.restore()


class Palette(QtWidgets.QDialog):
    """Type a few letters, press Enter. `more`: lines that are no actions, but settings and presets."""

    def __init__(
        self, actions: Registry, parent: QtWidgets.QWidget, more: Callable[[], list[SearchResult]] = list
    ) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self._registry, self._more = actions, more
        self._results: list[SearchResult] = []
        frame = named(QtWidgets.QFrame(), "palette")
        self.line = QtWidgets.QLineEdit(placeholderText=self.tr("Type a command, a setting or a preset"))
        describe(self.line, self.tr("Command"))
        self.line.textChanged.connect(self._filter)
        self.line.installEventFilter(self)
        self.list = QtWidgets.QListWidget()
        describe(self.list, self.tr("Commands"))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setUniformItemSizes(True)
        self.list.setItemDelegate(ActionDelegate(self.list))
        self.list.itemClicked.connect(lambda _: self._run())
        lay_out(QtWidgets.QVBoxLayout(frame), self.line, self.list, spacing=4, margins=(6, 6, 6, 6))
        lay_out(QtWidgets.QVBoxLayout(self), frame, margins=NONE)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.line.clear()
        self._filter("")
        self.line.setFocus()

    def open_over(self, window: QtWidgets.QWidget) -> None:
        self.resize(min(WIDTH, window.width() - 40), MAX_ROWS * ROW_HEIGHT + 60)
        corner = window.mapToGlobal(window.rect().topLeft())
        self.move(corner.x() + (window.width() - self.width()) // 2, corner.y() + 80)
        self.show()

    def _filter(self, query: str) -> None:
        lines = [*search_results.actions(self._registry), *self._more()]
        self._results = search_results.best(query, lines)
        self.list.clear()
        for line in self._results:
            item = QtWidgets.QListWidgetItem(line.text)
            item.setData(RESULT_ROLE, line)
            set_tip(item, line.why or "")
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        if not self._results:
            QtWidgets.QListWidgetItem(self.tr("nothing found"), self.list).setFlags(Qt.ItemFlag.NoItemFlags)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrow keys move in the list while the line keeps the focus; Enter runs the action."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if step is not None:
                row = self.list.currentRow() + step
                self.list.setCurrentRow(min(max(row, 0), self.list.count() - 1))
                return True
            if event.key() in ENTER:
                self._run()
                return True
        return bool(super().eventFilter(watched, event))

    def _run(self) -> None:
        row = self.list.currentRow()
        if 0 <= row < len(self._results) and self._results[row].usable:
            self.close()
            self._results[row].do()


_Block = tuple[str, list[tuple[str, str]]]  # A group of actions: its name, and the keys and text of each


def _in_columns(blocks: list[_Block]) -> list[list[_Block]]:
    """Put the blocks, in their order, into three columns at most, as low as that can be."""
    for most in count(max(len(rows) for _, rows in blocks)):
        columns: list[list[_Block]] = [[]]
        for block in blocks:
            lines = sum(len(rows) + 2 for _, rows in columns[-1])
            if columns[-1] and lines + len(block[1]) > most:
                columns.append([])
            columns[-1].append(block)
        if len(columns) <= COLUMNS:
            break
    return columns


MOUSE: Final = (
    ("Ctrl + wheel", "zoom at the mouse"),
    ("drag", "select time; Alt: without snapping"),
    ("Shift + drag", "move the time range"),
    ("double-click", "show everything"),
    ("right-click", "copy, export, zoom to the selection"),
    ("double-click a title", "only this view, or all"),
)


class KeySheet(QtWidgets.QDialog):
    """All keys by group, in three columns, with mouse and wheel."""

    def __init__(self, actions: Registry, parent: QtWidgets.QWidget) -> None:
        super().__init__(parent)
        set_title(self, self.tr("Keys"))
        blocks = [
            (group, [("  ".join(key_text(k) for k in a.keys), a.text) for a in members if a.keys])
            for group, members in actions.groups().items()
        ]
        blocks.append((self.tr("Mouse"), [(self.tr(keys), self.tr(text)) for keys, text in MOUSE]))
        blocks = [block for block in blocks if block[1]]
        columns = []
        for column in _in_columns(blocks):
            parts = [part for group, rows in column for part in (self._block(group, rows), 10)]
            columns.append(lay_out(QtWidgets.QVBoxLayout(), *parts, REST))
        sheet = lay_out(QtWidgets.QHBoxLayout(), *columns, spacing=20)
        below = lay_out(QtWidgets.QHBoxLayout(), REST, Button(self.tr("Close"), self.accept))
        lay_out(QtWidgets.QVBoxLayout(self), sheet, below, spacing=14, margins=(24, 20, 24, 16))

    def _block(self, group: str, rows: list[tuple[str, str]]) -> QtWidgets.QGridLayout:
        grid = new_grid(None, 16, 0)
        grid.addWidget(heading(group), 0, 0, 1, 2)
        for number, (keys, text) in enumerate(rows, start=1):
            pressed = styled(Label(keys), strong=True)
            pressed.setMinimumWidth(76)
            said = Label(text)
            if said.sizeHint().width() > WIDEST:
                said.setWordWrap(True)
                said.setFixedWidth(WIDEST)
            grid.addWidget(pressed, number, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(said, number, 1)
        grid.setColumnStretch(1, 1)
        return grid
