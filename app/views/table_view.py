"""A view that is a table: rows that can be sorted, copied and chosen."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex

from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.views.table_twin import Table
from app.views.view import View


class TableView(View):
    """Shows what `table` returns. A subclass overrides `table`, and `choose` if its rows lead somewhere."""

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        # It is its own table.
        self._controls.remove(self._toggle)
        self._toggle.hide()
        self.rows = self._make_table()
        self.set_body(self.rows)
        for signal in (self.rows.clicked, self.rows.activated):
            signal.connect(self._chosen)

    def draw(self, snapshot: Snapshot) -> None:
        """Renew the rows."""
        columns = self._table_model.columnCount()
        self._table_model.replace(*self.table())
        if columns != self._table_model.columnCount():
            self.rows.fit_columns()

    def model(self) -> Table:
        return self.table()

    def choose(self, row: Sequence[object]) -> None:
        """Somebody clicked a row, or pressed Return on it (override)."""

    def _chosen(self, index: QModelIndex) -> None:
        if index.isValid():
            self.choose(self._table_model.row(index.row()))
