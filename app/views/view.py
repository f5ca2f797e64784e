"""The base of every view: a card with a header and a body, a table twin and a text summary.

A subclass builds its drawing widget in `__init__` and passes it to `set_body`; then it overrides `draw` (and what it
needs of `summary`, `table` and what stands near them). The base holds the last snapshot and shows the table.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from PySide6.QtCore import QModelIndex
from PySide6.QtGui import QAction, QContextMenuEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QMenu, QStackedLayout, QVBoxLayout, QWidget

from app.layout import NONE, Part, card_header, lay_out
from app.model.desk_snapshot import DeskSnapshot
from app.model.pace import single_shot
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import Label, ToolButton, add_entry, describe, new_menu, set_tip
from app.style.theme import theme_changed
from app.views.table_twin import Table, TableTwin, chart_menu
from profiler.session.reader import Session

RESTED_MS = 500  # The hand that moves the range rests so long before table and spoken summary of another are made


class View(QFrame):
    """A card. Subclasses set ``id`` and ``title`` and override the methods in the second half."""

    id: ClassVar[str] = ""
    title: ClassVar[str] = ""

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__()
        self.setObjectName(f"view-{self.id}")
        self.setProperty("card", True)
        self.axis = axis
        self.snapshot: Snapshot | None = None
        self.asleep = False  # Nobody sees it: it draws nothing until it is woken and updated
        self._behind = False  # The drawing is of an earlier snapshot: it was only moved
        self._told: DeskSnapshot | None = None
        self._model: object = None  # What `draw` made of the snapshot
        self.export: Callable[[], object] | None = None  # Asks for the file of a picture of it, in a window

        self.header, self._note = card_header(self.tr(self.title))
        self._toggle = header_button(self.tr("Table"), self.tr("Show the same numbers as a table"), checkable=True)
        describe(self._toggle, self.tr("Show {0} as a table").format(self.tr(self.title)))
        self._toggle.toggled.connect(self.show_table)
        self.header_controls: list[QWidget] = [self._toggle]
        self.pages: dict[str, ToolButton] = {}  # Buttons that show something in place of the usual, by name
        self.header.setSpacing(8)
        self.header.addWidget(self._toggle)

        self._table: TableTwin | None = None
        self._stack = QStackedLayout()
        lay_out(QVBoxLayout(self), self.header, (self._stack, 1), spacing=6, margins=(14, 9, 14, 10))

        name = self.findChild(Label, "card-title")
        assert name is not None
        self._name = name

        self._soon = single_shot(self, 0, self._redraw)
        self._late = single_shot(self, RESTED_MS, self._renew_texts)
        theme_changed.connect(self._theme_moved)

    def set_body(self, widget: QWidget) -> None:
        self._stack.insertWidget(0, widget)
        self._stack.setCurrentIndex(0)

    def set_column(self, *parts: Part, spacing: int | None = None) -> QBoxLayout:
        """Have a body of parts below each other, as `lay_out` takes them."""
        body = QWidget()
        column = lay_out(QVBoxLayout(body), *parts, spacing=spacing, margins=NONE)
        self.set_body(body)
        return column

    def set_note(self, text: str, *shorter: str) -> None:
        self._note.set_full(text, *shorter)

    @property
    def note(self) -> str:
        return self._note.full

    def add_control(self, button: QWidget) -> None:
        self.header_controls.append(button)
        self.header.insertWidget(self.header.indexOf(self._toggle), button)

    def add_menu(self, text: str, actions: Sequence[QAction]) -> None:
        button = header_button(text)
        describe(button, self.tr("{0} of {1}").format(text, self.tr(self.title)))
        menu = new_menu(text, self)
        menu.addActions(list(actions))
        # Popped up and not run: a menu that Qt runs for a button holds up whatever clicked it.
        button.clicked.connect(lambda _=False: menu.popup(button.mapToGlobal(button.rect().bottomLeft())))
        self.add_control(button)

    def add_toggle(self, text: str, tip: str) -> ToolButton:
        button = header_button(text, tip, checkable=True)
        self.add_control(button)
        return button

    def add_page(self, name: str, text: str, tip: str, page: QWidget | None = None) -> ToolButton:
        """Put a button into the header that shows a widget in place of the chart; without one, the view draws it."""
        button = self.pages[name] = self.add_toggle(text, tip)
        if page is not None:
            self._stack.addWidget(page)
            self._toggle.toggled.connect(lambda shown: button.setChecked(button.isChecked() and not shown))
        button.toggled.connect(lambda shown: self._show_page(page, button, shown))
        return button

    @property
    def page(self) -> str:
        """What is shown in place of the usual, if anything."""
        return next((name for name, button in self.pages.items() if button.isChecked()), "")

    def _show_page(self, page: QWidget | None, button: ToolButton, shown: bool) -> None:
        for other in (self._toggle, *self.pages.values()) if shown else ():
            if other is not button:
                other.setChecked(False)
        chosen = [page_button.text() for page_button in self.pages.values() if page_button.isChecked()]
        self._name.setText(" · ".join([self.tr(self.title), *chosen]))
        self._redraw()
        if page is not None and shown:
            self._stack.setCurrentWidget(page)
        elif self._stack.currentWidget() is page:
            self._stack.setCurrentIndex(0)
        self._renew_texts()

    def update_snapshot(self, snapshot: Snapshot) -> None:
        """Show ``snapshot`` unless asleep; table and summary are made anew with the figures."""
        if self.asleep:
            return
        self.snapshot = snapshot
        fresh = snapshot.desk is not self._told
        self._draw_snapshot(fresh)
        if fresh:
            self._told = snapshot.desk
            self._renew_texts()

    def clear(self) -> None:
        self.snapshot = self._told = self._model = None
        self._soon.stop()
        self._late.stop()
        describe(self, description="")
        self.set_note("")
        if self._table is not None:
            self._table.cells.replace((), ())

    def show_table(self, shown: bool) -> None:
        """Show the table instead of the chart, or the chart again."""
        if shown and self._table is None:
            self._table = self._make_table()
            self._stack.addWidget(self._table)
        self._toggle.setChecked(shown)
        if shown and self._table is not None:
            self._renew_texts()
            self._stack.setCurrentWidget(self._table)
        elif self._table is not None and self._stack.currentWidget() is self._table:
            self._stack.setCurrentIndex(0)

    def menu(self) -> QMenu:
        """The context menu."""
        twin = self._toggle if self._toggle in self.header_controls else None
        menu = chart_menu(self, self.table, twin)
        if self.export is not None:
            menu.addSeparator()
            add_entry(menu, self.tr("Export this view…"), self.export)
        return menu

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.settle()
        self.menu().popup(event.globalPos())

    def by_unit(self, of_frames: str, of_steps: str) -> str:
        """The text about frames, or the one about steps where the session's frames are steps of a lab."""
        from profiler.analysis.recorded import counts_steps

        shown = self.snapshot
        return of_steps if shown is not None and counts_steps(shown.session) else of_frames

    def draw(self, snapshot: Snapshot) -> None:
        """Draw frames [0, snapshot.cursor_frame) within ``snapshot.axis.visible``."""

    def model(self) -> object:
        View.settle(self)
        return self._model

    @classmethod
    def concerns(cls, session: Session) -> bool | None:
        """Whether a session has what it shows, for a view that most have nothing for; None: it is always there."""
        return None

    @property
    def least_in_picture(self) -> int:
        """Pixels of height below which something of it would be cut off in a picture; 0: it gets along with any."""
        return 0

    def set_picture(self, on: bool) -> None:
        """Draw as in a picture (`on`) or as on the screen again: the former may be printed, and has no mouse."""

    def settle(self) -> None:
        if self._soon.isActive() or self._behind:
            self._redraw()

    def summary(self) -> str:
        """Return one sentence that says what the chart shows; must be cheap."""
        return ""

    def table(self) -> Table:
        return (), ()

    def _redraw(self) -> None:
        self._soon.stop()
        if self.snapshot is not None:
            self.draw(self.snapshot)

    def _draw_snapshot(self, fresh: bool) -> None:
        if fresh:
            self._redraw()

    def _theme_moved(self) -> None:
        if not self.asleep:
            self._redraw()

    def _renew_texts(self) -> None:
        if self.snapshot is None:
            return
        self._late.stop()
        describe(self, self.tr(self.title), description=self.summary())
        if self._toggle.isChecked() and self._table is not None:
            self._table.cells.replace(*self.table())
            self._table.fit_columns()

    def _make_table(self) -> TableTwin:
        return TableTwin(self.tr("{0}, as a table").format(self.tr(self.title)))

    def _is_table(self) -> None:
        """It has no chart that a table could stand for."""
        self.header_controls.remove(self._toggle)
        self._toggle.hide()


def header_button(text: str, tip: str = "", checkable: bool = False) -> ToolButton:
    button = ToolButton()
    button.setObjectName("table-toggle")
    button.setText(text)
    button.setCheckable(checkable)
    if tip:
        set_tip(button, tip)
        describe(button, tip)
    return button


class TableView(View):
    """Shows what `table` returns. A subclass overrides `table`, and `choose` if its rows lead somewhere."""

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self._is_table()
        self.rows = self._table = self._make_table()
        self.set_body(self.rows)
        for signal in (self.rows.clicked, self.rows.activated):
            signal.connect(self._chosen)

    def draw(self, snapshot: Snapshot) -> None:
        self.rows.show_rows(self.table())

    def model(self) -> Table:
        return self.table()

    def choose(self, row: Sequence[object]) -> None:
        """Somebody clicked a row, or pressed Return on it (override)."""

    def _chosen(self, index: QModelIndex) -> None:
        if index.isValid():
            self.choose(self.rows.cells.row(index.row()))
