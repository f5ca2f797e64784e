"""No text collides with another or is cut off, on the desk and in every view, at three sizes."""

from collections.abc import Callable
from functools import partial

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from text_geometry import cut_short, faults, texts
from views_desk import FRAMES, view_on

from app.model.desk_snapshot import DeskSnapshot, StageLine
from app.model.scope import Scope
from app.model.time_axis import TimeAxis
from app.pictures.writers import settle
from app.views import VIEWS, create
from app.views.stage_tree import VERDICT, StageTree
from pipelines.audio.word_errors import ErrorCount, Transcribed
from profiler.analysis.categories import CATEGORIES
from profiler.analysis.verdict import VERDICT_OF
from tests.each import each

SIZES = {(1280, 800): "dark", (1600, 1000): "light", (3840, 2160): "dark"}
VIEW_SIZES = ((420, 300), (700, 230), (1600, 900))


class Painted(QWidget):
    """Writes one text by hand into a rectangle."""

    def __init__(self, parent: QWidget, text: str, area: QRectF) -> None:
        super().__init__(parent)
        self._text, self._area = text, area
        self.resize(parent.size())

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.drawText(self._area, Qt.AlignmentFlag.AlignLeft, self._text)


def test_a_collision_and_a_cut_are_reported(qtbot):
    page = QWidget()
    qtbot.addWidget(page)
    page.resize(300, 100)
    QLabel("beneath all", page).move(20, 30)
    Painted(page, "across it", QRectF(40, 31, 100, 20))
    Painted(page, "a sentence that is longer than its place", QRectF(20, 60, 80, 20))
    QPushButton("a text too long for it", page).setGeometry(150, 60, 50, 24)
    page.show()
    settle()
    begins = ("collide: “beneath all", "cut off: “a sentence", "cut off: “a text too long")
    reported = sorted(faults(page))
    assert len(reported) == len(begins)
    assert all(map(str.startswith, reported, begins))


VERDICTS = sorted(set(VERDICT_OF.values()))


@each("width", [200, 276, 315, 340, 500])
def test_verdicts_are_whole_words_in_a_narrow_column(qtbot, width):
    """Where there is no room for a verdict, it stands in the panel alone."""
    bars = StageTree(TimeAxis())
    qtbot.addWidget(bars)
    costs = dict.fromkeys(CATEGORIES, 1.0)
    lines = [StageLine(f"score.{n}", "scoring", "decode", 1.0, 0.1, v, "B", "") for n, v in enumerate(VERDICTS)]
    groups = (StageLine("scoring", "scoring", "", len(lines) * 1.0, 1.0),)
    of = ErrorCount(), Transcribed(0, 0)
    desk = DeskSnapshot(Scope("whole", 0, 100, 100), costs, {}, groups, tuple(lines), 9.0, 10.0, 0.1, 0.1, *of)
    bars.show_model(desk)
    bars.resize(width, 900)
    bars.show()
    settle()
    assert cut_short(bars) == []
    said = {text.text.partition(" · ")[0].removesuffix("-bound") for text in texts(bars)}
    assert bars.isColumnHidden(VERDICT) or {verdict.removesuffix("-bound") for verdict in VERDICTS} <= said
    assert bars.isColumnHidden(VERDICT) == (width < 300)
    assert faults(bars) == []


@pytest.mark.slow
@pytest.mark.parametrize(("size", "theme"), SIZES.items(), ids=str)
def test_nothing_collides_on_the_desk(window, sample, size, theme):
    made = window()
    made.choose_theme(theme)
    assert made.open_session(sample)
    made.resize(*size)
    states: list[Callable[[], object]] = [
        lambda: None,
        made.axis.follow_window,
        lambda: made.playhead.seek(900),
        lambda: made.axis.select(3.0, 6.0),
        lambda: made.actions_.trigger("go.roofline"),
        lambda: made.desk.breakdown.show_table(True),
    ]
    for number, state in enumerate(states):
        state()
        settle()
        for view in made.desk.views.values():
            view.settle()
        settle()
        assert faults(made) == cut_short(made) == [], f"state {number}"


@pytest.mark.slow
@pytest.mark.parametrize("view_id", VIEWS)
def test_nothing_collides_in_a_view(qtbot, sample, view_id):
    with view_on(partial(create, view_id), sample, qtbot) as (view, playhead):
        for size in VIEW_SIZES:
            view.resize(*size)
            for seconds in ((0.0, FRAMES * 0.01), (6.0, 9.0), (12.0, 12.4)):
                playhead.axis.set_visible(*seconds)
                playhead.axis.set_hover(seconds[0] + 0.1)
                settle()
                view.settle()
                settle()
                assert faults(view) == [], f"{size}, {seconds}"
            for shown in (True, False):
                view.show_table(shown)
                settle()
                assert faults(view) == [], f"{size}, table {shown}"
