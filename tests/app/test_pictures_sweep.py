"""The picture of a sweep: what is drawn where, and that it is written."""

import made_study
import pytest
from PySide6.QtGui import QImage

from app.cli.sweep import SIZE
from app.model.study import Study, study_of
from app.model.study_texts import FRONT, TRIED, document, front_chart
from app.pictures.drawings import drawings_picture
from pipelines.labs.chart import Line, Note


def sweep(*trials: tuple[float, float], ci95: tuple[float, float] | None = None) -> Study:
    """A sweep with trials of (time ratio, word error rate), all on the front but those that an earlier one is below."""
    rows = [made_study.trial(n, r, w, settings={"search.beam": 8.0 + n}) for n, (r, w) in enumerate(trials)]
    front = [
        made_study.point(n, None if ci95 is None else ratio, ci95)
        for n, (ratio, wer) in enumerate(trials)
        if not any(r <= ratio and w < wer for r, w in trials)
    ]
    return study_of(made_study.study(rows, front))


def test_the_front_is_drawn_with_intervals_and_the_other_trials_without():
    chart = front_chart(sweep((0.5, 0.4), (0.9, 0.1), (0.95, 0.2), ci95=(0.4, 1.0)))
    tried, steps, points = (layer for layer in chart.layers if isinstance(layer, Line))
    assert (tried.name, tried.x, tried.y) == (TRIED, (20.0,), (0.95,))
    assert steps.steps
    assert (points.name, points.x, points.y) == (FRONT, (10.0, 40.0), (0.9, 0.5))
    assert (points.low, points.high) == ((0.4, 0.4), (1.0, 1.0))
    assert chart.x.low is not None
    assert chart.x.low < 10
    notes = [layer for layer in chart.layers if isinstance(layer, Note)]
    assert [(note.text, note.x) for note in notes] == [("beam 9", 10.0), ("beam 8", 40.0)]


def test_points_close_to_each_other_have_numbers_and_unconfirmed_ones_no_interval():
    chart = front_chart(sweep((0.5, 0.4), (0.6, 0.39), (0.9, 0.1)))
    assert [layer.text for layer in chart.layers if isinstance(layer, Note)] == ["#2", "#1", "#0"]
    points = chart.layers[2]
    assert isinstance(points, Line)
    assert points.low == points.high == points.y


def test_the_front_of_three_objectives_is_no_line():
    tree = made_study.four_trials(objectives=["rtf", "wer", "memory"])
    lines = [layer for layer in front_chart(study_of(tree)).layers if isinstance(layer, Line)]
    assert [(line.name, line.joined) for line in lines] == [(TRIED, False), (FRONT, False)]


@pytest.mark.parametrize("tree", [sweep(), sweep((0.5, 0.4)), sweep((0.5, 0.4), (0.9, 0.1), ci95=(0.5, 0.6))])
def test_a_picture_is_written_also_of_few_trials(tree, tmp_path):
    drawings_picture(document(tree), {}, tmp_path / "front.png", SIZE, scale=1.0)
    image = QImage(str(tmp_path / "front.png"))
    assert (image.width(), image.height()) == (960, 600)
