"""Between two readings of the file the charts show what they drew at another place: the same as drawn afresh."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication
from sample_session import Sample, write_sample
from test_views_updates import pixels_of
from views_desk import Desk, settle

from app.charts.time_plot import GUTTER, TimePlot
from app.style.theme import set_theme, theme
from app.views.chart import AHEAD
from app.views.sentence import written_columns
from profiler.analysis.lod.columns import column_grid

CHARTS = ("cost", "work", "words")


@pytest.fixture
def desk(tmp_path: Path, qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A replay at its seventh second, with a window of 6 s that follows it."""
    desk = Desk(write_sample(tmp_path / "a.asrs", frames=2048, utterance_frames=256))
    without_figures(desk, monkeypatch)
    follow(desk)
    yield desk
    desk.playhead.close()
    desk.window.close()
    desk.window.deleteLater()


def without_figures(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures in the plots are of what was drawn last, and are renewed at a pace of their own."""
    desk.breakdown.hide()  # its texts take more or less room from the charts
    settle()
    monkeypatch.setattr("app.views.cost_items.realtime_text", lambda _: "")
    monkeypatch.setattr("app.model.playhead.READ_S", 1e9)
    for name in CHARTS:
        view = getattr(desk, name)
        # Where drawing is slow, their time comes between two pictures that are compared.
        monkeypatch.setattr(view, "_renew_texts", lambda: None)
        view._late.stop()
        monkeypatch.setattr(view._late, "start", lambda *_: None)


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


def plots(desk: Desk) -> list[TimePlot]:
    return [getattr(desk, name).plot for name in CHARTS]


def shown_pixels(desk: Desk, scale: float = 1.0) -> list[np.ndarray]:
    return [pixels_of(plot, scale) for plot in plots(desk)]


def afresh(desk: Desk, scale: float = 1.0) -> list[np.ndarray]:
    """The pixels of charts that draw everything."""
    for name in CHARTS:
        view = getattr(desk, name)
        view.draw(view.snapshot)
    settle()
    return shown_pixels(desk, scale)


def assert_as_drawn_afresh(desk: Desk, scale: float = 1.0) -> None:
    # Of a scale between whole ones each position has pixels of its own, and the faint line may be a pixel off.
    unlike = 0.001 if scale == round(scale) else 0.03
    kept = shown_pixels(desk, scale)
    for name, before, after in zip(CHARTS, kept, afresh(desk, scale), strict=True):
        # The block that the left end cuts has its part of the faint line elsewhere.
        left = round((GUTTER + 30) * scale)
        assert np.mean(before[:, left:] != after[:, left:]) <= unlike, name
        assert np.array_equal(before[:, : GUTTER // 2], after[:, : GUTTER // 2]), name


@pytest.mark.parametrize("scale", [1.0, 1.25, 2.0])
@pytest.mark.parametrize("frames", [1.3, 3, 5])
def test_what_scrolls_is_what_would_be_drawn(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, frames: float, scale: float
) -> None:
    made = reductions(desk, monkeypatch)
    first = grid(desk)[0]
    for step in range(1, 10):
        for _ in range(step % 3 + 1):
            advance(desk, frames)
            pixels_of(desk.cost.plot, scale)
        assert set(made) <= {"words"}, "where another utterance begins"
        assert len(made) <= 1
        assert_as_drawn_afresh(desk, scale)
        del made[:]
    assert grid(desk)[0] > first + 20, "it scrolled"


def test_the_pixels_are_drawn_once_while_they_scroll(desk: Desk) -> None:
    rasters = desk.cost.items.stack, desk.words.wave, desk.work.panels
    advance(desk, 2)
    desk.window.grab()
    before = [item._pixels for item in rasters]
    for _ in range(5):
        advance(desk, 2)
        desk.window.grab()
    assert all(item._pixels is kept for item, kept in zip(rasters, before, strict=True))


def _later(desk: Desk) -> None:
    desk.playhead._desk = None


def _far(desk: Desk) -> None:
    seconds = grid(desk)[1] * (AHEAD * desk.cost.plot.columns + 1)
    desk.playhead._position += 100 * seconds


def _back(desk: Desk) -> None:
    desk.axis.pan(-0.1)


def _jump(desk: Desk) -> None:
    desk.playhead._position = 1700.0


def _zoom(desk: Desk) -> None:
    desk.axis.zoom(0.5)


def _select(desk: Desk) -> None:
    desk.axis.select(3.0, 5.0)


def _resize(desk: Desk) -> None:
    desk.window.resize(800, 1500)


def _theme(desk: Desk) -> None:
    set_theme("light" if theme().name == "dark" else "dark")


def _reading(desk: Desk) -> None:
    desk.playhead._reading += 1


def _scale(desk: Desk) -> None:
    desk.cost.set_logarithmic(True)


def _session(desk: Desk) -> None:
    path = Path(str(desk.playhead.path)).with_name("b.asrs")
    desk.playhead.open(write_sample(path, frames=2048, utterance_frames=128, seed=5))
    follow(desk)


def _paused(desk: Desk) -> None:
    desk.playhead.playing = False


CHANGES = {
    "later": (_later, CHARTS),
    "far": (_far, CHARTS),
    "back": (_back, CHARTS),
    "jump": (_jump, CHARTS),
    "zoom": (_zoom, CHARTS),
    "selection": (_select, CHARTS),
    "size": (_resize, CHARTS),
    "theme": (_theme, CHARTS),
    "reading": (_reading, CHARTS),
    "scale": (_scale, ("cost",)),
    "session": (_session, CHARTS),
    "pause": (_paused, CHARTS),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_longer_right_is_drawn_again(desk: Desk, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """The charts have scrolled a little when it changes, and scroll on."""
    act, charts = CHANGES[change]
    advance(desk, 3)
    made = reductions(desk, monkeypatch)
    before = theme().name
    try:
        act(desk)
        advance(desk, 2)
        assert set(made) == set(charts)
        assert_as_drawn_afresh(desk)
    finally:
        set_theme(before)


def test_on_a_finer_screen_it_is_drawn_finer(desk: Desk) -> None:
    advance(desk, 3)
    for scale in (1.0, 2.0, 1.0, 1.5):
        shown_pixels(desk)
        advance(desk, 2)
        assert_as_drawn_afresh(desk, scale)


def test_other_colours_are_those_of_what_scrolls(desk: Desk) -> None:
    """The theme change reaches the plot, not its view."""
    advance(desk, 3)
    before = theme().name
    set_theme(before)
    settle()
    try:
        for view in (desk.cost, desk.work, desk.words):
            kept = pixels_of(view.plot)
            set_theme("light" if theme().name == "dark" else "dark")
            settle()
            now = pixels_of(view.plot)
            rows = min(len(kept), len(now))  # other texts below may take a pixel more
            assert np.mean((kept[:rows] != now[:rows])[:, GUTTER:]) > 0.5
    finally:
        set_theme(before)


def test_a_requested_model_is_that_of_the_cursor(desk: Desk) -> None:
    """Between two drawings, too: in a table, a sentence, a picture."""
    advance(desk, 3)
    model = desk.cost.model()
    assert model is not None
    number, width = grid(desk)[:2]
    assert model.first_s == pytest.approx(number * width)
    advance(desk, 30)
    desk.cost.settle()
    assert desk.cost._model is not None
    number, width = grid(desk)[:2]
    assert desk.cost._model.first_s == pytest.approx(number * width)


def test_the_word_at_the_cursor_is_named_while_the_chart_scrolls(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where the next utterance begins, its part of the wave is drawn again."""
    made, looks, currents = reductions(desk, monkeypatch), set(), set()
    for _ in range(60):
        del made[:]
        advance(desk, 3)
        model = desk.words._model
        assert model is not None
        assert model.current is not None
        strip = desk.words.sentence
        later = [cell[3] >= strip._cursor_s for cell in written_columns(strip._spoken)]
        looks.add((strip._spoken.number, *later))
        if model.spoken[model.current].number not in currents:
            currents.add(model.spoken[model.current].number)
            begun = len(currents) == 1 or "words" in made
            assert begun
        desk.cost.draw(desk.cost.snapshot)  # its own time to draw is another matter
    assert len(currents) > 1
    assert len(looks) > 8


def test_a_live_run_shows_what_was_read(tmp_path: Path, qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Sample(tmp_path / "live.asrs", frames=2048, utterance_frames=256)
    sample.write(1024)
    desk = Desk(sample.path)
    without_figures(desk, monkeypatch)
    desk.playhead._timer.stop()
    desk.axis.set_visible(4.0, 10.0)
    desk.axis.follow()
    try:
        for until in range(1040, 1200, 16):
            sample.write(until)
            desk.playhead.tick()
            settle()
            desk.playhead._timer.stop()
            assert desk.playhead.cursor_frame == until
            assert_as_drawn_afresh(desk)
    finally:
        sample.close()
        desk.playhead.close()
        desk.window.close()
        desk.window.deleteLater()


def test_what_is_spoken_is_no_reason_to_draw(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    advance(desk, 3)
    made = reductions(desk, monkeypatch)
    for name in CHARTS:
        getattr(desk, name)._renew_texts()
    advance(desk, 3)
    assert not made
    assert desk.cost.model() is not None
    assert made == ["cost"], "it has scrolled since"
