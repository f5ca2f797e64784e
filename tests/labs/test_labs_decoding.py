"""Labs that decode speech: what is planted for them, and what they decode against the recogniser itself."""

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.config import Config, assign
from pipelines.labs import _scoring, ctc_search, gaussian_selection, gpu_scoring_search, scoring_free
from pipelines.labs.gaussian_selection import JUDGED, METHOD
from pipelines.labs.gpu_scoring_search import STAND_IN, THREADS
from pipelines.labs.scoring_free import FREE, MODELS, RATE, SCORING, SLOW
from pipelines.labs.sweep import SweepResult
from pipelines.models.ctc.layouts import Units
from pipelines.models.opening import open_model
from pipelines.run.recogniser import build
from pipelines.scoring.strategy import never, quietly
from profiler.spans import NullLane, Recorder
from tests.labs.contract import LOUD, NOISE, Contract, NoDevice, about, at_size, near, with_speech
from tests.pipelines import scoring_reference as reference


def planted_selection(gaussians=0.3, time=0.45, noise=NOISE):
    names = [gaussian_selection.EXACT, *gaussian_selection.points()]
    exact = {gaussian_selection.EXACT: 1.0}
    return SweepResult(
        timings=at_size(4, dict.fromkeys(names, 10 * time) | {gaussian_selection.EXACT: 10.0}, noise),
        counts={"words": 50},
        by_variant={
            "gaussians": dict.fromkeys(names, gaussians) | exact,
            "same_best": dict.fromkeys(names, 0.8),
            "error": dict.fromkeys(names, 2.5),
            "word_errors": dict.fromkeys(names, 4) | exact,
        },
    )


def planted_halves(scoring=10.0, search=0.8, device="cuda", noise=NOISE):
    ms = {
        "scoring, processor": 10.0,
        "scoring, device": 10.0 / scoring,
        f"scoring, {THREADS} threads": 5.5,
        "search, processor": 4.0,
        "search, device": 4.0 / search,
    }
    return SweepResult(
        timings=at_size(10, ms, noise),
        counts={"senones": 5126, "asked": 1800.0},
        texts={"reason": "" if device else "torch was built without CUDA"},
        device=device,
    )


def planted_decodes(left=0.7, slow=0.1, noise=NOISE):
    """Of a second of speech: the share that is left without scoring, in the shipped recogniser and the slow one."""
    ms = {}
    for name in MODELS:
        share = slow if name == SLOW else left
        parts = {scoring_free.WHOLE: 10.0, FREE: 10.0 * share, SCORING: 10.0 * (1 - share)}
        ms |= {scoring_free.variant(name, part): t for part, t in parts.items()}
    return SweepResult(timings=at_size(RATE, ms, noise))


def the_half_of_the_processor_is_run(result):
    assert result.device == ""
    assert result.texts["reason"]
    assert result.timings.cells() == [(variant, 12) for variant in result.timings.variants]
    assert set(result.timings.variants) == set(planted_halves().timings.variants)
    assert 0 < result.counts["asked"] <= result.counts["senones"]
    assert gpu_scoring_search.LAB.judge(result).verdict == "cannot be tried here"


def planted_searches(left=0.4, errors=16.0, noise=NOISE):
    """The share of the search's time that is left without repeated blanks, and the errors in 1000 words then."""
    ms = {"greedy": 0.1, "lexicon": 2.0, "graph": 10.0, "compact": 9.0, "minimal": 4.0, "blank skipping": 10.0 * left}
    wrong = dict.fromkeys(ms, 16.0) | {"greedy": 700.0, "lexicon": 400.0, "blank skipping": errors}
    return SweepResult(
        timings=at_size(500, ms, noise),
        counts={"words": 1000},
        by_variant={"errors": wrong, "arcs": dict.fromkeys(list(ms)[1:], 1e6)},
    )


def words_are_those_of_the_recogniser(result):
    assert result.by_variant["errors"]["graph"] <= result.by_variant["errors"]["lexicon"]
    assert result.by_variant["arcs"]["minimal"] < result.by_variant["arcs"]["compact"]


CONTRACTS = {
    "ctc-search": Contract(
        ctc_search.LAB,
        planted_searches,
        true=[{}, {"errors": 15.0}],
        false=[{"left": 0.8}, {"errors": 18.0}],
        noisy=[{"left": 0.58, "noise": LOUD}],
        figures=near(time_share=0.4, graph_rtf=0.001, greedy_arcs=None, greedy_word_errors=700.0),
        said=[({}, "of 1000 words 16 are wrong instead of 16; 700 are without a graph, 400 without a language model")],
        drawn=about((1.0, 20.0, 100.0, 90.0, 40.0, 40.0)),
        small=ctc_search.Params(vocabulary=60, speech_s=1.0, seconds=0.0),
        desk=with_speech,
        check=words_are_those_of_the_recogniser,
    ),
    "gaussian-selection": Contract(
        gaussian_selection.LAB,
        planted_selection,
        false=[{"gaussians": 0.6}, {"time": 0.7}],
        noisy=[{"time": 0.57, "noise": LOUD}],
        figures=near(time_share=0.45, gaussians_fewer_times=1 / 0.3),
        said=[({}, "of 50 words 4 are wrong instead of 1")],
        drawn=about((45.0,) * 4),
    ),
    "gpu-scoring-search": Contract(
        gpu_scoring_search.LAB,
        planted_halves,
        false=[{"scoring": 1.2}, {"search": 8.0}],
        noisy=[{"scoring": 2.05, "noise": LOUD}],
        impossible=[{"device": ""}],
        figures=near(scoring_gain=10.0, search_gain=0.8),
        more=[
            (
                {"device": "", "search": 0.1},
                near(scoring_gain=None, scoring_threads_gain=10 / 5.5, search_stand_in_gain=0.1),
            )
        ],
        said=[({"device": ""}, "torch was built without CUDA")],
        small=gpu_scoring_search.Params(vocabulary=60, frames=12, block=8, seconds=0.0),
        desk=lambda: with_speech(NoDevice),
        stops=False,
        check=the_half_of_the_processor_is_run,
    ),
    "scoring-free": Contract(
        scoring_free.LAB,
        planted_decodes,
        false=[{"left": 0.2}],
        noisy=[{"left": 0.48, "noise": LOUD}],
        figures=near(
            tied_mixtures_left_share=0.7,
            tied_mixtures_left_share_predicted=pytest.approx(0.7, abs=0.01),
            continuous_frame_by_frame_speed_up_at_most=10.0,
            net_rtf=0.01,
        ),
        drawn=about((10.0, 70.0, 70.0, 70.0)),
    ),
}


@pytest.fixture(scope="module")
def scoring():
    return _scoring.Scoring(assign(Config(), {"model": "ptm"}), with_speech(), frames=20)


def test_scores_are_those_of_the_settings_in_blocks_of_any_size_whatever_acted_before(scoring):
    whole = scoring.scores({"block": 20})
    assert whole.shape == (20, scoring.scorer.n_senones)
    np.testing.assert_allclose(scoring.scores({"block": 3}), whole, atol=1e-3)
    assert not np.allclose(scoring.scores({"gmm.selection.method": "top-n"}), whole, atol=1e-3)
    first, second = scoring.work({"block": 2}, 5), scoring.work({"block": 7})
    second()
    first()
    scored = scoring.scorer.score(scoring.features[0][:3], 0, NullLane())
    np.testing.assert_allclose(scored, whole[:3], atol=1e-3)


def test_the_greedy_words_are_those_whose_units_are_put_out_exactly():
    units = Units(("<blank>", "a", "b", "<wb>"), 0, 3)
    rows = np.eye(4, dtype=np.float32)[[3, 0, 1, 1, 0, 1, 3, 3, 0, 2, 0, 3, 1, 2]]
    assert ctc_search.greedy(rows, units, {(1, 1): "double", (1, 2): "ab"}) == ["double", "b", "ab"]


def test_the_middle_of_an_utterance():
    first = np.arange(20, dtype=np.float32).reshape(10, 2)
    assert _scoring.middle([first], 4).tolist() == first[3:7].tolist()
    assert _scoring.middle([first], 10).tolist() == first.tolist()
    # Where it is too short it comes again.
    assert _scoring.middle([first], 12).tolist() == [*first.tolist(), *first[:2].tolist()]


def test_scores_differ_by_what_is_near_the_best():
    exact = np.array([[0.0, -5.0, -50.0], [-3.0, -1.0, -90.0]])
    scores = exact + np.array([[1.0, -2.0, 30.0], [4.0, 1.0, 0.0]])
    assert _scoring.difference(scores, exact, 20.0) == (pytest.approx((1 + 2 + 4 + 1) / 4), 0.5)


def test_every_point_is_a_configuration_and_the_judged_one_is_the_usual():
    base = assign(Config(), {"model": "continuous"})
    chosen = {name: settings.check(assign(base, some)) for name, some in gaussian_selection.points().items()}
    assert all(config.gmm.selection.enabled for config in chosen.values())
    assert chosen[JUDGED].gmm.selection.threshold == Config().gmm.selection.threshold


@pytest.mark.slow
def test_shares_and_best_senones_are_those_of_a_reference(monkeypatch):
    few = {METHOD: "vq", "gmm.selection.threshold": 0.8, "gmm.selection.codewords": 16}
    monkeypatch.setattr(gaussian_selection, "FAMILIES", {"shortlists (VQ)": {"radius 0.8": few}})
    desk = with_speech()
    params = gaussian_selection.Params(components=8, speech_s=1.0, frames=2, seconds=0.0)
    facts = gaussian_selection.LAB.measure(params, desk).by_variant
    base = assign(Config(), {"model": "continuous", "gmm.components": 8})
    model = open_model(base, quietly, never)
    family = reference.family_of(model)
    _, prepared = reference.configured(family, "vq")
    features = np.concatenate(_scoring.features_of(model, desk, 1.0))
    panels, centre = family.parameters.gaussians, family.parameters.centre
    g = reference.linear(panels, centre, features)
    lists = reference.lists_of(prepared)
    kept = reference.on_lists(family, lists, reference.nearest(lists.codebook, centre, features), g)
    assert facts["gaussians"][JUDGED] == pytest.approx(np.isfinite(kept).mean(), rel=0.02)
    exact, selected = (reference.mixtures(family, each) for each in (g, kept))
    same = (exact.argmax(axis=1) == selected.argmax(axis=1)).mean()
    # A tie may fall the other way in 32 bits.
    assert facts["same_best"][JUDGED] == pytest.approx(same, abs=2 / len(features))
    assert facts["gaussians"][gaussian_selection.EXACT] == facts["same_best"][gaussian_selection.EXACT] == 1.0


def recogniser_of(**changed):
    recorder = Recorder()
    found = build(assign(Config(), {"graph.vocabulary": 60} | changed), recorder, NullLane(), quietly, never)
    found.register(recorder)
    return found


@pytest.mark.slow
def test_both_ways_of_searching_find_the_words_that_the_scores_say():
    """Scores that make one senone the best at random, frame by frame: the same words on both sides."""
    words = []
    for changed in ({}, {"search.device": STAND_IN}):
        recogniser = recogniser_of(block=8, **changed)
        draw = np.random.default_rng(3)
        scores = draw.normal(0, 4, (40, recogniser.scorer.n_senones)).astype(np.float32)
        words.append(gpu_scoring_search.searching(recogniser, scores)())
    assert words[0] == words[1]
    assert words[0]


@pytest.mark.slow
def test_a_decode_with_scores_that_are_there_finds_the_same_words(bundled_speech):
    samples = audio.load(bundled_speech / "08-kal16-short.flac").samples
    calls = scoring_free.decodes(recogniser_of(), samples)
    words = calls[scoring_free.WHOLE]()
    assert words
    assert calls[SCORING]() > 0
    assert calls[FREE]() == words
