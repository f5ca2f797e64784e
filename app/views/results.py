"""Results: what tasks have found (explanations, comparisons, sweeps), a tab each."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QTabBar, QTabWidget, QWidget

from app.layout import named, wrapped
from app.model.time_axis import TimeAxis
from app.style.icons import ButtonIcon
from app.style.plain_text import ToolButton, describe, literal
from app.views.view import View


class ResultsView(View):
    """The pages of tasks; it has nothing of a session."""

    id = "results"
    title = "Results"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self._is_table()
        nothing = wrapped(self.tr("What you explain, confirm, audit, compare, try or sweep is shown here."))
        nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.set_body(nothing)
        self.tabs = QTabWidget(documentMode=True, elideMode=Qt.TextElideMode.ElideRight)
        describe(self.tabs, self.tr("Results"))
        self._stack.addWidget(self.tabs)
        self._show_tabs()

    def show_result(self, page: QWidget) -> None:
        if self.tabs.indexOf(page) < 0:
            at = self.tabs.addTab(page, literal(page.windowTitle()))
            close = named(ToolButton(), "dock-button")
            close.setIconSize(QSize(13, 13))
            describe(close, self.tr("Close {0}").format(page.windowTitle()))
            ButtonIcon(close, "close", "muted", "border")
            close.clicked.connect(lambda _=False: page.close())
            self.tabs.tabBar().setTabButton(at, QTabBar.ButtonPosition.RightSide, close)
            page.destroyed.connect(self._show_tabs)
        self.tabs.setCurrentWidget(page)
        self._show_tabs()

    def _show_tabs(self, *_: object) -> None:
        self._stack.setCurrentIndex(1 if self.tabs.count() else 0)
        describe(self, self.tr("Results"), self.summary())

    def summary(self) -> str:
        titles = [page.windowTitle() for at in range(self.tabs.count()) if (page := self.tabs.widget(at)) is not None]
        return f"{', '.join(titles)}." if titles else self.tr("Nothing was explained, compared or tried yet.")

    def model(self) -> int:
        return self.tabs.count()
