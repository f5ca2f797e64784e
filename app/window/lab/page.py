"""The Lab page: a gallery of all labs and the page of one, over the runs of labs (`app.model.lab_runs`)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QStackedWidget, QVBoxLayout, QWidget

from app.layout import Scrolled, heading, lay_out, muted, named, styled, wrapped
from app.model.lab_runs import LABS, LabRuns, Past, last_of, sessions
from app.style.plain_text import Label
from app.window.lab.detail import LabDetail
from app.window.lab.tile import SMALLEST, LabTile
from pipelines import labs
from pipelines.labs.declaration import GROUPS, Lab, Measured, Parameters

MARGIN = 24
GAP = 12
MOST_COLUMNS = 8


class Gallery(Scrolled):
    """Cards in a grid for each group; arrow keys move between them."""

    chosen = Signal(str)

    def __init__(self, known: Mapping[str, Lab[Parameters, Measured]]) -> None:
        super().__init__()
        self.setObjectName("welcome")
        page = named(QWidget(), "scrolled")
        title = styled(Label(self.tr("Lab")), 1.9, strong=True)
        lead = self.tr(
            "Claims about the cost of speech recognition, each to be tried on this machine: "
            "what is measured, the picture, the verdict. Use the machine for nothing else meanwhile."
        )
        margins = (MARGIN, 22, MARGIN, 22)
        column = lay_out(QVBoxLayout(page), title, wrapped(lead), spacing=8, margins=margins)
        self.tiles: dict[str, LabTile] = {}
        self._grids: list[tuple[QGridLayout, list[LabTile]]] = []
        for group, name in GROUPS.items():
            members = {key: lab for key, lab in known.items() if lab.group == group}
            if members:
                self._add_group(column, self.tr(name), members)
        if not known:
            column.addWidget(muted(self.tr("There are no labs in this copy of the program.")))
        column.addStretch(1)
        self.setWidget(page)
        self._columns = 0
        self._lay_out()

    def _add_group(self, column: QBoxLayout, title: str, members: Mapping[str, Lab[Parameters, Measured]]) -> None:
        lay_out(column, 10, heading(title))
        grid = QGridLayout()
        grid.setSpacing(GAP)
        grid.setColumnStretch(MOST_COLUMNS, 1)  # what a row with few cards leaves
        tiles = []
        for name, lab in members.items():
            tile = self.tiles[name] = LabTile(name, lab, partial(self.chosen.emit, name))
            tiles.append(tile)
        column.addLayout(grid)
        self._grids.append((grid, tiles))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _lay_out(self) -> None:
        room = self.viewport().width() - 2 * MARGIN
        columns = min(max(1, (room + GAP) // (SMALLEST + GAP)), MOST_COLUMNS)
        for grid, tiles in self._grids:
            if columns != self._columns:
                for tile in tiles:
                    grid.removeWidget(tile)
                for i, tile in enumerate(tiles):
                    grid.addWidget(tile, i // columns, i % columns)
            # Cards are as wide in a group that fills no row: columns without any have no gaps either.
            wide = (room - (columns - 1) * GAP) // columns
            for i in range(MOST_COLUMNS):
                grid.setColumnMinimumWidth(i, wide if i < min(columns, len(tiles)) else 0)
        self._columns = columns

    def _rows(self) -> list[list[LabTile]]:
        step = self._columns
        return [tiles[first : first + step] for _, tiles in self._grids for first in range(0, len(tiles), step)]

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows go from card to card: left and right by one, up and down to the next row, whatever group it is of."""
        steps = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}
        step = steps.get(Qt.Key(event.key()))
        if step is None or not self.tiles:
            super().keyPressEvent(event)
            return
        rows, order = self._rows(), list(self.tiles.values())
        places = ((y, x) for y, row in enumerate(rows) for x, tile in enumerate(row) if tile.hasFocus())
        now = next(places, None)
        if now is None:
            to = order[0]
        elif step[0]:
            row = rows[min(max(now[0] + step[0], 0), len(rows) - 1)]
            to = row[min(now[1], len(row) - 1)]
        else:
            at = order.index(rows[now[0]][now[1]]) + step[1]
            to = order[min(max(at, 0), len(order) - 1)]
        to.setFocus(Qt.FocusReason.TabFocusReason)
        self.ensureWidgetVisible(to)
        event.accept()


class LabPage(QStackedWidget):
    """Shows all labs or one. `busy`: whether a run that is no lab's is under way."""

    open_session = Signal(str)
    changed = Signal()  # A lab has begun or ended

    def __init__(self, busy: Callable[[], bool], command: Sequence[str] = LABS, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._known = labs.every()
        self.runs = LabRuns(busy, command, self)
        self.gallery = Gallery(self._known)
        self.detail: LabDetail | None = None
        self._past: dict[str, Past | None] = {}
        self._files: dict[str, list[Path]] = {}
        self._to_read: list[str] = []
        self._reading = QTimer(self, interval=0)
        self._reading.timeout.connect(self._read_next)
        self.addWidget(self.gallery)
        self.gallery.chosen.connect(self.show_lab)
        self.runs.changed.connect(self._on_changed)
        self.runs.progress.connect(self._on_progress)
        self.runs.ended.connect(self._on_ended)
        self.runs.failed.connect(self._on_failed)

    def showEvent(self, event: QShowEvent) -> None:
        """Look for runs that came since, one lab at a time."""
        super().showEvent(event)
        files = sessions()
        self._to_read = [n for n in self._known if files.get(n) != self._files.get(n)]
        self._files = files
        if self._to_read:
            self._reading.start()
        self._on_changed()

    def _read_next(self) -> None:
        if self._to_read:
            self._read(self._to_read.pop(0))
        else:
            self._reading.stop()

    def _read(self, name: str) -> None:
        past = self._past[name] = last_of(self._files.get(name, ()), name)
        self.gallery.tiles[name].show_past(past)
        if self.detail is not None and self.detail.name == name:
            self.detail.show_past(past)

    def show_lab(self, name: str) -> None:
        if self.detail is None or self.detail.name != name:
            if self.detail is not None:
                self.removeWidget(self.detail)
                self.detail.deleteLater()
            self.detail = LabDetail(name, self._known[name], self)
            self.detail.show_past(self._past.get(name))
            self.addWidget(self.detail)
        self._on_changed()
        self.setCurrentWidget(self.detail)
        self.detail.run.setFocus(Qt.FocusReason.TabFocusReason)

    def show_gallery(self) -> None:
        """Show all labs; the one that was looked at has the focus."""
        self.setCurrentWidget(self.gallery)
        if self.detail is not None:
            tile = self.gallery.tiles[self.detail.name]
            tile.setFocus(Qt.FocusReason.TabFocusReason)
            self.gallery.ensureWidgetVisible(tile)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.currentWidget() is not self.gallery:
            self.show_gallery()
        else:
            super().keyPressEvent(event)

    def _on_changed(self) -> None:
        self._on_progress("", None)
        self.changed.emit()

    def _on_progress(self, what: str, share: float | None) -> None:
        running = self.runs.running
        for name, tile in self.gallery.tiles.items():
            tile.show_running(name == running, share if name == running else None)
        if self.detail is not None:
            self.detail.show_state(running, share, what)

    def _on_ended(self, name: str) -> None:
        self._files = sessions()
        self._read(name)

    def _on_failed(self, sentence: str) -> None:
        if self.detail is not None:
            self.detail.show_problem(sentence)

    def shutdown(self) -> None:
        self._reading.stop()
        self.runs.control.shutdown()
