"""The view of a stream's latency: bars at their words, the figures of a range, a click, the table, and no stream."""

import pytest
from PySide6.QtCore import QPointF
from test_word_latency import FIRST, recorded, stream
from views_desk import amount, look, pixels, settle, view_on

from app.style.theme import theme
from app.views.latency import COLORS, LatencyView, stack_of


@pytest.fixture
def path(tmp_path):
    return recorded(tmp_path / "a.asrs", stream())


def test_a_bar_is_as_high_as_the_word_waited(path, qtbot):
    with view_on(LatencyView, path, qtbot) as (view, _):
        look(view.axis, FIRST * 0.01, FIRST * 0.01 + 0.6)
        model = view.model()
        a, cat, sat = model.words
        assert stack_of(a) == pytest.approx({"buffering": 80, "compute": 10})
        assert stack_of(cat) == pytest.approx({"buffering": 80, "queue": 150, "compute": 10})
        # Shown before its end: it waited for nothing until then, but for the endpoint after it.
        assert stack_of(sat) == pytest.approx({"endpoint": 30})
        assert model.quantiles == pytest.approx({"p50": 0.090, "p90": 0.210, "p99": 0.237})
        assert model.number == 3
        picture = pixels(view.plot)
        assert all(amount(picture, theme().color(COLORS[name]).name()) > 0 for name in ("queue", "buffering"))


def test_a_click_selects_the_word_and_the_figures_are_then_of_it(path, qtbot):
    with view_on(LatencyView, path, qtbot) as (view, _):
        look(view.axis, FIRST * 0.01, FIRST * 0.01 + 0.6)
        second = FIRST * 0.01 + 0.20
        x = (second - FIRST * 0.01) / 0.6 * view.plot.columns
        view.plot.clicked.emit(QPointF(x, 20))
        settle()
        assert view.axis.selected == pytest.approx((FIRST * 0.01 + 0.14, FIRST * 0.01 + 0.32))
        model = view.model()
        assert model.quantiles["p50"] == pytest.approx(0.240)
        assert "p50 240 ms" in view.summary()
        assert "Largest part: queue, 150 ms on average" in view.summary()
        lines = {line.name: line.value for line in view.readout(model, second)}
        assert (lines["first shown"], lines["queue"], lines["stable"]) == ("240", "150", "290")
        assert view.readout(model, FIRST * 0.01 + 0.005) == ()


def test_the_table_has_the_slowest_word_first(path, qtbot):
    with view_on(LatencyView, path, qtbot) as (view, playhead):
        headers, rows = view.table()
        assert headers[:5] == ["word", "first shown", "stable", "final", "buffering"]
        assert [row[0] for row in rows] == ["cat", "a", "sat"]
        assert rows[2][headers.index("emission")] == "-100"
        assert rows[2][headers.index("endpoint")] == "40"
        assert rows[0][headers.index("endpoint")] is None
        playhead.close()
        settle()
        assert view.table()[1] == []
        assert view.advice.full == ""


def test_a_session_without_a_stream_says_what_to_set(finished, qtbot):
    with view_on(LatencyView, finished, qtbot) as (view, _):
        assert view.remark.text == "This session was not decoded as a stream: set Chunk, under Streaming in the form."
        assert view.summary() == view.remark.text
        assert view.advice.text() == ""


def test_of_more_words_than_columns_the_slowest_are_drawn(tmp_path, qtbot):
    words = tuple((f"w{n}", FIRST + n // 20, 1) for n in range(1000))
    about = stream(changes=[(5, 0, list(words))], segments=[(5, 1000, 0)])
    path = recorded(tmp_path / "many.asrs", about, words)
    with view_on(LatencyView, path, qtbot) as (view, _):
        look(view.axis, 0.0, 100.0)
        assert len(view.model().words) <= view.plot.columns
        assert view.model().number == 1000
