"""Lab `scoring-free`: free decodes find the same words as whole ones, its verdict on planted times."""

from __future__ import annotations

import pytest

from pipelines.audio import loading as audio
from pipelines.config import Config, assign
from pipelines.labs import scoring_free
from pipelines.labs.scoring_free import JUDGED, LAB, MODELS, SLOW, Found
from pipelines.run.recogniser import build
from pipelines.scoring.strategy import never, quietly
from profiler.spans import NullLane, Recorder
from tests.labs.planted import LOUD, arms


def test_a_decode_with_scores_that_are_there_finds_the_same_words(bundled_speech):
    config = assign(Config(), {"graph.vocabulary": 60})
    recorder = Recorder()
    recogniser = build(config, recorder, NullLane(), quietly, never)
    recogniser.register(recorder)
    samples = audio.load(bundled_speech / "08-kal16-short.flac").samples
    calls = scoring_free.decodes(recogniser, samples)
    words = calls["whole"]()
    assert words
    assert calls["scoring"]() > 0
    assert calls["free"]() == words


def planted(left=0.7, slow=0.1, noise=0.01):
    """Of a second of speech: the share that is left without scoring, in the shipped recogniser and the slow one."""
    whole = dict.fromkeys(MODELS, 10.0)
    free = {name: 10.0 * (slow if name == SLOW else left) for name in MODELS}
    scoring = {name: whole[name] - free[name] for name in MODELS}
    parts = {"whole": whole, "free": free, "scoring": scoring}
    made = arms({f"{part} {n}": t for part, some in parts.items() for n, t in some.items()}, noise)
    rows = {part: {n: made[f"{part} {n}"] for n in MODELS} for part in parts}
    return Found(audio_s=1.0, **rows)


def test_it_holds_where_search_is_most_of_the_shipped_recogniser():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["tied_mixtures_left_share"] == pytest.approx(0.7, rel=0.02)
    assert found.figures["tied_mixtures_left_share_predicted"] == pytest.approx(0.7, abs=0.01)
    assert found.figures["continuous_frame_by_frame_speed_up_at_most"] == pytest.approx(
        10, rel=0.02
    )
    assert found.figures["net_rtf"] == pytest.approx(0.01, rel=0.02)


def test_it_does_not_where_scoring_is():
    assert LAB.judge(planted(left=0.2)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(left=0.48, noise=LOUD)).verdict == "undecided"


def test_the_picture_adds_up_to_the_whole():
    chart = LAB.picture(planted())
    assert JUDGED in chart.x.categories
    for parts in zip(*(values for _, values in chart.layers[0].parts), strict=True):
        assert sum(parts) == pytest.approx(100.0)
