"""The gallery: every lab as a card, by group, in as many columns as there is room for."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QVBoxLayout, QWidget

from app.layout import Scrolled, heading, lay_out, muted, wrapped
from app.model.lab_runs import Past
from app.style.plain_text import Label
from app.style.theme import font
from app.window.lab.tile import SMALLEST, LabTile
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
        page = QWidget()
        page.setObjectName("scrolled")
        title = Label(self.tr("Lab"))
        title.setFont(font(1.9, strong=True))
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
            tile = self.tiles[name] = LabTile(name, lab)
            tile.clicked.connect(lambda _=False, chosen=name: self.chosen.emit(chosen))
            tiles.append(tile)
        column.addLayout(grid)
        self._grids.append((grid, tiles))

    def show_past(self, name: str, past: Past | None) -> None:
        self.tiles[name].show_past(past)

    def show_running(self, name: str, share: float | None) -> None:
        for tile in self.tiles.values():
            tile.show_running(tile.name == name, share if tile.name == name else None)

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
