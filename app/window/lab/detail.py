"""The page of one lab: its picture, what is measured, its parameters, run and stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QProgressBar, QStackedWidget, QVBoxLayout, QWidget

from app.layout import REST, Scrolled, heading, lay_out, named, styled, wrapped
from app.model.lab_runs import Past
from app.style.plain_text import Button, Elided, Label, Wrapped, describe, set_tip, unbroken
from app.views.labs.card import LabCard
from app.views.labs.ranges import HEADERS, rows_of
from app.views.table_twin import TableTwin, chart_menu
from app.window.form.fields import Field
from app.window.lab.tile import ago
from pipelines.config import Value, options_of
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.figures import without_code
from profiler.plain import one_line

if TYPE_CHECKING:
    from app.window.lab.page import LabPage

SIDE = 300  # Pixels of the column with the parameters
MARGIN, SCROLL_BAR = 16, 12  # Of the columns in pixels; what the right one may take of it


class LabDetail(QWidget):
    """One lab, without a run or with its last one."""

    def __init__(self, name: str, lab: Lab[Parameters, Measured], page: LabPage) -> None:
        super().__init__()
        self.setObjectName("desk")
        self.name, self.lab, self._page = name, lab, page
        self._past: Past | None = None
        self._running = False
        self._changed: dict[str, Value] = {}
        self.card = LabCard()
        frame = named(QFrame(), card=True)
        self.table = TableTwin(self.tr("The values of the picture"))
        self._shown = QStackedWidget()
        self._shown.addWidget(self.card)
        self._shown.addWidget(self.table)
        lay_out(QVBoxLayout(frame), self._shown, margins=(3, 3, 3, 3))
        left = lay_out(QVBoxLayout(), self._top(), (frame, 1), spacing=8)
        margins = (MARGIN, 14, MARGIN - SCROLL_BAR, 14)
        lay_out(QHBoxLayout(self), (left, 1), self._side(), spacing=14, margins=margins)
        self.show_past(None)
        self.show_state("", None)

    def _top(self) -> QBoxLayout:
        self.to_gallery = named(Button(self.tr("‹ All labs"), self._page.show_gallery), quiet=True)
        self.about = styled(Elided(), muted=True)
        self.as_table = named(Button(self.tr("Table")), "table-toggle")
        self.as_table.setCheckable(True)
        self.as_table.toggled.connect(lambda shown: self._shown.setCurrentWidget(self.table if shown else self.card))
        self.as_table.toggled.connect(lambda _: self.table.fit_columns())
        self.open = Button(self.tr("Open the session in the desk"), self._open)
        return lay_out(QHBoxLayout(), self.to_gallery, (self.about, 1), self.as_table, self.open)

    def _side(self) -> QWidget:
        frame = named(QFrame(), card=True)
        frame.setFixedWidth(SIDE)
        self.run = named(styled(Button(self.tr("Run"), self._run_or_stop), 1.05, strong=True), primary=True)
        self.run.setMinimumHeight(34)
        self.bar = QProgressBar(textVisible=False)
        self.bar.setFixedHeight(6)
        self.what = styled(Elided(), muted=True)
        self.problem = named(Wrapped(), "danger-text")
        state = (self.run, self.bar, self.what, self.problem)
        column = lay_out(QVBoxLayout(frame), *state, spacing=8, margins=(14, 12, 14, 12))
        for title, text, papers in (
            (self.tr("What is measured"), self.lab.measured, ""),
            (self.tr("When it holds"), self.lab.bound, self.lab.papers),
        ):
            about = Label(unbroken(without_code(text)))
            about.setWordWrap(True)
            source = [wrapped(self.tr("Source: {0}").format(papers))] if papers else []
            lay_out(column, heading(title), about, *source, 8)
        column.addWidget(heading(self.tr("Parameters")))
        self.fields: dict[str, Field] = {}
        for option in options_of(type(self.lab.parameters)):
            field = self.fields[option.key] = Field(option)
            field.show_value(option.default)
            field.edited.connect(self._edited)
            field.refused.connect(lambda _key, sentence: self.show_problem(sentence))
            field.widen()
            column.addWidget(field)
        lay_out(column, *([] if self.fields else [Label(self.tr("none"))]), REST)
        area = Scrolled(frame)
        area.setFixedWidth(SIDE + SCROLL_BAR)
        return area

    def _edited(self, key: str, value: Value) -> None:
        if value == getattr(self.lab.parameters, key):
            self._changed.pop(key, None)
        else:
            self._changed[key] = value

    def _run_or_stop(self) -> None:
        if self._running:
            self._page.runs.stop()
        else:
            self._page.runs.start(self.name, dict(self._changed))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        chart = None if self._past is None else self._past.record.chart
        over = self.card.isVisible() and self.card.rect().contains(self.card.mapFrom(self, event.pos()))
        if chart is not None and over:
            table = [self.tr(header) for header in HEADERS], rows_of(chart)
            chart_menu(self.card, lambda: table, self.as_table).popup(event.globalPos())

    def _open(self) -> None:
        if self._past is not None:
            self._page.open_session.emit(str(self._past.path))

    def show_past(self, past: Past | None) -> None:
        self._past = past
        finding, chart = (None, None) if past is None else (past.record.finding, past.record.chart)
        self._show_nothing()
        self.card.show_lab(self.lab, finding, chart)
        self.table.cells.replace([self.tr(header) for header in HEADERS], () if chart is None else rows_of(chart))
        self.as_table.setEnabled(chart is not None)
        self.open.setEnabled(past is not None)
        if past is not None:
            self.about.set_full(f"{ago(past.when)} · {past.path.name}")

    def _show_nothing(self) -> None:
        if self._running:
            self.card.show_nothing(self.tr("It is being measured."))
        elif self._past is None:
            self.card.show_nothing(self.tr("Not tried yet: Run measures it on this machine."))
        else:
            self.card.show_nothing(self.tr("This run ended before everything was measured."))
        if self._past is None:
            self.about.set_full(self.tr("running") if self._running else self.tr("not tried yet"))

    def show_state(self, running: str, share: float | None, what: str = "") -> None:
        """Show which lab is under way: this one, another or none; how much of it is done."""
        if self._running != (running == self.name):
            self._running = running == self.name
            self._show_nothing()
        self.run.setText(self.tr("Stop") if self._running else self.tr("Run"))
        why = None if self._running else self._page.runs.unavailable_reason()
        self.run.setEnabled(why is None)
        set_tip(self.run, why or "")
        describe(self.run, description=why or "")
        self.bar.setVisible(self._running)
        self.bar.setRange(0, 0 if share is None else 1000)
        if share is not None:
            self.bar.setValue(round(1000 * share))
        shown = what if self._running else why or ""
        self.what.set_full(one_line(shown))
        self.what.setVisible(bool(shown))
        if self._running:
            self.show_problem("")
        for field in self.fields.values():
            field.show_locked(self._running)

    def show_problem(self, sentence: str) -> None:
        self.problem.setText(one_line(sentence, 600))
        self.problem.setVisible(bool(sentence))
