"""Between two readings of the file the charts show what they drew at another place: the same as drawn afresh."""

from collections.abc import Callable

import numpy as np
import pytest
from sample_session import write_sample
from views_desk import Desk, pixels_of, settle

from app.charts.time_plot import GUTTER
from app.style.theme import set_theme, theme
from app.views.chart import AHEAD
from profiler.analysis.lod.columns import column_grid

CHARTS = ("cost", "work", "words")


@pytest.fixture
def desk(desk, monkeypatch):
    """A replay at its seventh second, with a window of 6 s that follows it; figures have a pace of their own."""
    desk.breakdown.hide()  # its texts take more or less room from the charts
    settle()
    monkeypatch.setattr("app.views.cost.realtime_text", lambda _: "")
    monkeypatch.setattr("app.model.playhead.READ_S", 1e9)
    for name in CHARTS:
        view = getattr(desk, name)
        # Where drawing is slow, their time comes between two pictures that are compared.
        monkeypatch.setattr(view, "_renew_texts", lambda: None)
        view._late.stop()
        monkeypatch.setattr(view._late, "start", lambda *_: None)
    follow(desk)
    return desk


def follow(desk: Desk) -> None:
    """Let a window of 6 s follow the cursor, which is where it scrolls."""
    desk.axis.set_visible(2.0, 8.0)
    desk.playhead._position = 680.0
    desk.playhead.playing = True
    desk.playhead._emit()
    desk.axis.follow()
    advance(desk, 40)


def advance(desk: Desk, frames: float) -> None:
    """The cursor moves by itself."""
    desk.playhead._position += frames
    desk.playhead._emit()
    settle()


def reductions(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the charts whose models are made from now on."""
    found: list[str] = []
    for name in CHARTS:
        view = getattr(desk, name)

        def reduce(*of: object, name: str = name, make: Callable = view.reduce) -> object:
            found.append(name)
            return make(*of)

        monkeypatch.setattr(view, "reduce", reduce)
    return found


def grid(desk: Desk) -> tuple[int, float]:
    """Number of the first column of pixels in view and seconds of one."""
    return column_grid(*desk.axis.visible, desk.cost.plot.columns)


def assert_as_drawn_afresh(desk: Desk, scale: float = 1.0) -> None:
    # Of a scale between whole ones each position has pixels of its own, and the faint line may be a pixel off.
    unlike = 0.001 if scale == round(scale) else 0.03
    views = [getattr(desk, name) for name in CHARTS]
    kept = [pixels_of(view.plot, scale) for view in views]
    for view in views:
        view.draw(view.snapshot)
    settle()
    for name, view, before in zip(CHARTS, views, kept, strict=True):
        after = pixels_of(view.plot, scale)
        # The block that the left end cuts has its part of the faint line elsewhere.
        left = round((GUTTER + 30) * scale)
        assert np.mean(before[:, left:] != after[:, left:]) <= unlike, name
        assert np.array_equal(before[:, : GUTTER // 2], after[:, : GUTTER // 2]), name


@pytest.mark.parametrize(("frames", "scale"), [(1.3, 1.0), (3, 1.25), (5, 2.0)])
def test_what_scrolls_is_what_would_be_drawn(desk, monkeypatch, frames, scale):
    made = reductions(desk, monkeypatch)
    rasters = desk.cost.stack, desk.words.wave, desk.work.panels
    first = grid(desk)[0]
    for step in range(1, 6):
        drawn = [item._pixels for item in rasters]
        for _ in range(step % 3 + 1):
            advance(desk, frames)
            pixels_of(desk.cost.plot, scale)
        assert set(made) <= {"words"}, "where another utterance begins"
        assert len(made) <= 1
        if step > 1 and not made and scale == 1.0:
            assert all(item._pixels is kept for item, kept in zip(rasters, drawn, strict=True))
        assert_as_drawn_afresh(desk, scale)
        del made[:]
    assert grid(desk)[0] > first + 5, "it scrolled"


CHANGES: dict[str, Callable[[Desk], object]] = {
    "later": lambda desk: setattr(desk.playhead, "_desk", None),
    "far": lambda desk: advance(desk, 100 * grid(desk)[1] * (AHEAD * desk.cost.plot.columns + 1)),
    "back": lambda desk: desk.axis.pan(-0.1),
    "jump": lambda desk: setattr(desk.playhead, "_position", 1700.0),
    "zoom": lambda desk: desk.axis.zoom(0.5),
    "selection": lambda desk: desk.axis.select(3.0, 5.0),
    "size": lambda desk: desk.window.resize(800, 1500),
    "theme": lambda desk: set_theme("light" if theme().name == "dark" else "dark"),
    "reading": lambda desk: setattr(desk.playhead, "_reading", desk.playhead._reading + 1),
    "pause": lambda desk: setattr(desk.playhead, "playing", False),
    "scale": lambda desk: desk.cost.set_logarithmic(True),
}


def test_what_is_no_longer_right_is_drawn_again(desk, monkeypatch, tmp_path):
    """The charts have scrolled a little when it changes, and scroll on."""
    made = reductions(desk, monkeypatch)
    for change, act in CHANGES.items():
        follow(desk)
        advance(desk, 3)
        del made[:]
        act(desk)
        advance(desk, 2)
        assert set(made) == ({"cost"} if change == "scale" else set(CHARTS)), change
        assert_as_drawn_afresh(desk)
    desk.playhead.open(write_sample(tmp_path / "b.asrs", frames=2048, utterance_frames=128, seed=5))
    follow(desk)
    assert_as_drawn_afresh(desk)
