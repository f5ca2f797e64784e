"""The shared time axis: what is under the mouse stays there, following ends and begins as said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.time_axis import AHEAD, EMPTY_SPAN_S, MINIMUM_SPAN_S, WINDOW_S, TimeAxis


@pytest.fixture
def finished():
    """Of a session of 100 s."""
    axis = TimeAxis()
    axis.reset(100.0, fit=True)
    return axis


@pytest.fixture
def young():
    """Of a run that has just begun."""
    axis = TimeAxis()
    axis.reset()
    return axis


def test_zoom_keeps_the_second_under_the_mouse_in_place(finished):
    finished.set_visible(20.0, 60.0)
    finished.zoom(0.5, at=30.0)
    assert finished.visible == pytest.approx((25.0, 45.0))
    for factor in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="zoom factor"):
            finished.zoom(factor)


def test_zoom_and_pan_stay_within_the_session(finished):
    axis = finished
    axis.zoom(1e-9, at=50.0)
    t0, t1 = axis.visible
    assert t1 - t0 == pytest.approx(MINIMUM_SPAN_S)
    axis.zoom(1e9, at=50.0)
    assert axis.visible == (0.0, 100.0)
    axis.zoom(0.5, at=0.0)
    axis.pan(-5)
    assert axis.visible == (0.0, 50.0)
    axis.pan(50)
    assert axis.visible == (50.0, 100.0)


def test_a_run_grows_from_the_left_and_then_scrolls(young):
    axis = young
    axis.set_data(2.0, 2.0)
    assert axis.visible == (0.0, EMPTY_SPAN_S)
    axis.set_data(15.0, 15.0)
    assert axis.visible == (0.0, 15.0)
    axis.set_data(200.0, 200.0)
    assert axis.visible == (200.0 - WINDOW_S, 200.0)


def test_a_pan_ends_following_and_fit_begins_it_again(young):
    axis = young
    axis.set_data(200.0, 200.0)
    axis.pan(-0.5)
    before = axis.visible
    axis.set_data(260.0, 260.0)
    assert not axis.following
    assert axis.visible == before
    axis.fit()
    axis.set_data(300.0, 300.0)
    assert axis.following
    assert axis.visible == (0.0, 300.0)


def test_zoom_while_following_keeps_the_tail_at_the_new_width(young):
    axis = young
    axis.set_data(200.0, 200.0)
    axis.zoom(0.5)
    axis.set_data(250.0, 250.0)
    assert axis.visible == pytest.approx((250.0 - WINDOW_S / 2, 250.0))


def test_a_window_follows_a_replay_and_uses_its_width(finished):
    axis = finished
    axis.set_data(0.0, 100.0)
    axis.follow_replay()
    axis.set_data(1.9, 100.0)
    assert axis.windowed
    assert axis.visible == pytest.approx((0.0, WINDOW_S)), "1.9 s are a tenth of the width, not a fiftieth"
    axis.set_data(50.0, 100.0)
    t0, t1 = axis.visible
    assert t1 - t0 == pytest.approx(WINDOW_S)
    assert t1 - 50.0 == pytest.approx(AHEAD * WINDOW_S), "what comes is seen too"
    axis.set_data(100.0, 100.0)
    assert axis.visible == pytest.approx((100.0 - WINDOW_S, 100.0))
    axis.set_data(30.0, 100.0)
    t0, t1 = axis.visible
    assert t0 <= 30.0 <= t1, "a cursor set back stays in view"


def test_a_replay_keeps_the_range_that_the_user_chose(finished):
    axis = finished
    axis.fit()
    axis.follow_replay()
    assert axis.visible == (0.0, 100.0)
    axis.follow_window()
    assert axis.windowed
    axis.pan(-0.1)
    assert not axis.windowed
    before = axis.visible
    axis.follow_replay()
    assert axis.visible == before


def test_selection_is_ordered_and_whole_frames(qtbot, finished):
    axis = finished
    with qtbot.waitSignal(axis.selection_changed) as reported:
        axis.select(7.004, 3.0)
    assert reported.args == [(3.0, 7.004)]
    assert axis.selected_frames == (300, 700)
    axis.select(5.0, 5.001)
    assert axis.selected is None
    axis.select(98.0, 400.0)
    assert axis.selected == (98.0, 100.0), "it ends with the session"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("zoom"), st.floats(0.01, 100), st.floats(0, 500)),
            st.tuples(st.just("pan"), st.floats(-3, 3), st.just(0.0)),
            st.tuples(st.just("data"), st.floats(0, 500), st.just(0.0)),
            st.tuples(st.just("fit"), st.just(0.0), st.just(0.0)),
        ),
        max_size=25,
    )
)
def test_whatever_is_done_the_range_is_ascending_and_not_negative(steps):
    axis = TimeAxis()
    for what, a, b in steps:
        if what == "zoom":
            axis.zoom(a, b)
        elif what == "pan":
            axis.pan(a)
        elif what == "data":
            axis.set_data(a, max(a, axis.end))
        else:
            axis.fit()
        t0, t1 = axis.visible
        assert t0 >= 0.0
        assert t1 - t0 >= MINIMUM_SPAN_S * 0.999
        # The range of a young run has room for what is to come.
        assert t1 <= max(axis.end, WINDOW_S) + 1e-6
