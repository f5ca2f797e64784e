"""A pinned range: breakdown and statistics show what is selected as a multiple of it."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from views_desk import amount, figures_of, pixels, settle, view_on

from app.model.time_axis import RANGE
from app.style.theme import blended, theme
from app.views.breakdown import BreakdownView
from app.views.statistics import StatisticsView
from profiler.analysis.categories import CATEGORIES
from profiler.plain import milliseconds
from tests.category_times import categories_ns


def test_the_breakdown_shows_the_pinned_range(sample, qtbot):
    with view_on(BreakdownView, sample, qtbot, (500, 600)) as (view, playhead):
        axis, track = playhead.axis, playhead.track
        axis.select(15.0, 20.0)
        axis.pin((1.0, 4.0))
        settle()
        desk = view.model()
        assert (desk.scope.kind, desk.baseline[:2], desk.pair) == (RANGE, (100, 400), None)
        before = categories_ns(track)[100:400].mean(axis=0) * 1e-6
        assert desk.before["compute"] == pytest.approx(float(before[CATEGORIES.index("compute")]))
        assert sum(desk.before.values()) == pytest.approx(desk.baseline.own_ms)
        assert desk.own_ms / desk.baseline.own_ms < 0.5, "it skips there, and selects"
        own = milliseconds(desk.baseline.own_ms)
        # Of other speech: no ratio, which would have no interval.
        assert view.sum.text().endswith(f"\npale: baseline 0:01.00 – 0:04.00, {own} ms of its own speech")
        headers, rows = view.table()
        assert not any("ratio" in str(header) for header in headers)
        compute = CATEGORIES.index("compute")
        assert rows[compute][list(headers).index("before, ms per frame")] == f"{before[compute]:.4f}"
        pale = blended(theme().category["compute"], theme().card, 0.55)
        assert amount(pixels(view.bar), pale) > 50
        axis.pin(None)
        settle()
        desk = view.model()
        assert (desk.before, desk.baseline) == ({}, None)
        assert "baseline" not in view.sum.text()
        assert amount(pixels(view.bar), pale) == 0


def test_without_a_selection_the_baseline_is_the_pinned_range_too(sample, qtbot):
    with view_on(BreakdownView, sample, qtbot) as (_, playhead):
        session, track = playhead.session, playhead.track
        baseline = figures_of(session, track, 2048, pinned=(0, 9999)).baseline
        wall = baseline.own_ms + baseline.categories["other_programs"]
        assert wall == pytest.approx(float(np.mean(track.wall_row[:])) * 1e-6)


def test_statistics_show_mean_and_percentile_of_the_baseline(sample, qtbot):
    with view_on(StatisticsView, sample, qtbot, (500, 360)) as (view, playhead):
        track = playhead.track
        playhead.axis.select(15.0, 20.0)
        assert "baseline" not in view.note
        assert view.table()[1][0][-2:] == [None, None]
        playhead.axis.pin((1.0, 4.0))
        settle()
        there = track.own_ns(100, 400) * 1e-6
        mean, high = milliseconds(there.mean()), milliseconds(np.quantile(there, 0.99))
        # Of other speech: no ratio, which would have no interval.
        assert view.note.endswith(f"baseline: mean {mean}, p99 {high} ms")
        assert view.summary().endswith(f"baseline: mean {mean}, p99 {high} ms.")
        assert view.table()[1][0][-2:] == [mean, high]


def test_a_baseline_is_pinned_by_key_marked_and_of_one_session(qtbot, window, finished, sample):
    w = window()
    w.open_session(finished)
    assert not w.actions_.trigger("view.pin")
    assert not w.actions_.trigger("view.unpin")
    w.axis.select(1.0, 2.0)
    qtbot.keyClick(w, Qt.Key.Key_B, Qt.KeyboardModifier.ShiftModifier)
    assert w.axis.baseline_frames == (100, 200)
    w.axis.clear()
    settle()
    plot = w.desk.views["cost"].plot
    assert plot.bottom.names_at(plot.columns * 1.5 / 12.0) == "baseline"
    assert w.actions_.trigger("view.unpin")
    assert w.axis.baseline is None
    assert plot.bottom.names_at(plot.columns * 1.5 / 12.0) == ""
    w.axis.pin((1.0, 2.0))
    w.playhead.reopen()
    assert w.axis.baseline == (1.0, 2.0), "the same session"
    w.open_session(sample)
    assert w.axis.baseline is None
