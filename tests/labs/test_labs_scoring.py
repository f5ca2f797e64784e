"""Labs of scoring and arithmetic: what is planted for them, and what they time against plain computations."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.config import Config, assign, presets
from pipelines.labs import _kernels as kernels
from pipelines.labs import (
    _nets,
    _scoring,
    batching,
    exp_cost,
    exp_share,
    figures,
    gaussian_selection,
    gpu_scoring_search,
    lazy_outputs,
    low_rank,
    multi_frame,
    parameter_bytes,
    scoring_free,
    simd_int8,
    sparse,
    teacher_student,
    texts,
    vq_lookup,
)
from pipelines.labs._nets import Decoded, NetResult
from pipelines.labs.batching import COLUMNS, MIXTURES, NET, ROWS
from pipelines.labs.exp_cost import PYTHON
from pipelines.labs.exp_share import LIBRARY_BEST, LIBRARY_SUM
from pipelines.labs.gaussian_selection import JUDGED, METHOD
from pipelines.labs.gpu_scoring_search import STAND_IN, THREADS
from pipelines.labs.low_rank import RETRAINED, SHARES
from pipelines.labs.multi_frame import OWN, RULES, STEPS
from pipelines.labs.scoring_free import FREE, MODELS, RATE, SCORING, SLOW
from pipelines.labs.simd_int8 import (
    BATCHED,
    EIGHT,
    INTEGERS,
    LIBRARY,
    ONE_SUM,
    PLAIN,
    PRESETS,
    UNROLLED,
)
from pipelines.labs.sparse import DENSE, FRAMES, KEPT, LIMITS, SPARSE
from pipelines.labs.sweep import SweepResult
from pipelines.labs.teacher_student import LABELS, NETS, TAUGHT, TEACHER
from pipelines.labs.vq_lookup import BEST, FULL
from pipelines.models import nets, shrink, sphinx
from pipelines.models.nets import Layer
from pipelines.models.opening import open_model
from pipelines.run.recogniser import build
from pipelines.scoring.continuous import ContinuousGmm, pack
from pipelines.scoring.selection import vq_table
from pipelines.scoring.strategy import never, quietly
from profiler.analysis.comparison.statistics import Ratio
from profiler.spans import NullLane, Recorder
from tests.labs.contract import Contract, NoDevice, about, with_speech
from tests.labs.planted import LOUD, NOISE, at_size, timings
from tests.pipelines import selection_reference as reference
from tests.pipelines import sphinx_writer
from tests.pipelines.net_files import card, forward, net

MULTI_FRAMES = [multi_frame.variant(rule, step) for rule in RULES for step in STEPS]
LOW_RANK = [low_rank.WHOLE, *(f"{share:g}" for share in SHARES), RETRAINED]
FEW_PARAMETERS = parameter_bytes.Params(senones=64, gaussians=5, dimensions=3, batch=4, seconds=0.0)
SIZE = 64 * 5 * 7 * 4
"""Bytes of these parameters."""


def planted_batches(gain=5.0, rows_at_2=3.0, noise=NOISE, mixtures=None):
    """A frame takes 1 ms alone and 1/`gain` in batches of 2 and 4; as rows, 2 take `rows_at_2` ms a frame.

    `mixtures`: the gain of the mixtures, where it is another. A turn of a scorer scores eight frames.
    """
    ms = {}
    for variant in (NET, MIXTURES, COLUMNS, ROWS):
        own = mixtures if variant == MIXTURES and mixtures else gain
        each = {1: 1.0, 2: rows_at_2 if variant == ROWS else 1 / own, 4: 1 / own}
        ms[variant] = {n: (n if variant in (COLUMNS, ROWS) else batching.FEW) * each[n] for n in each}
    return SweepResult(timings=timings(ms, noise), texts={"net": "base"})


def planted_operations(exp=3.0, zip_loop=0.6, noise=NOISE, in_numpy=None):
    """A millisecond for an addition, in Python and in numpy; exp and the loop over pairs as given.

    `in_numpy`: exp in numpy, where it takes another time.
    """
    python = {"nothing": 0.3, "nothing, in pairs": zip_loop, "add": 1.0 + zip_loop}
    python |= {"multiply": 1.0 + zip_loop, "compare": 0.9 + zip_loop, "exp": exp + 0.3}
    numpy = {
        "nothing": 0.01,
        "add": 1.01,
        "multiply": 1.01,
        "compare": 0.8,
        "exp": (in_numpy or exp) + 0.01,
    }
    ways = {PYTHON: python, "numpy float32": numpy}
    ms = {f"{way}, {what}": t for way, some in ways.items() for what, t in some.items()}
    return SweepResult(timings=at_size(1000, ms, noise))


def planted_shares(share_at_1=0.05, share_at_64=0.2, noise=NOISE):
    best = {1: 20.0 * (1 - share_at_1), 64: 32.0 * (1 - share_at_64)}
    ms = {exp_share.SUM: {1: 20.0, 64: 32.0}, exp_share.BEST: best}
    return SweepResult(timings=timings(ms, noise), texts={"model": "single-stream"})


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
    """How many times as fast each part is on the device."""
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


def planted_outputs(asked=300, alone=0.5, together=0.5, noise=NOISE, spread=10):
    """Of 1 000 outputs `asked` are requested; lazy variants take the given parts of the time of all."""
    draw = np.random.default_rng(0)
    counts = [(asked + draw.integers(-spread, spread + 1, 40)).tolist() for _ in range(8)]
    shares = dict(zip(lazy_outputs.BLOCKS, (alone, together), strict=True))
    ms = {
        variant: {n: (1.0 if variant == lazy_outputs.WHOLE else share) / n for n, share in shares.items()}
        for variant in lazy_outputs.VARIANTS
    }
    return lazy_outputs.Result(timings=timings(ms, noise), outputs=1000, asked=counts, frames=1)


def planted_low_rank(lost=0, gain=3.0, noise=NOISE, frames=0, uneven=0):
    """Twenty utterances of 50 words and 100 frames; the retrained net loses `lost` in each, plus or minus `uneven`."""
    turns = np.array([uneven, -uneven] * 10)
    decoded = {}
    for name in LOW_RANK:
        trained = name == RETRAINED
        same = 60 - (frames + turns if trained else 0 * turns)
        errors = [10 + lost * trained] * 20
        decoded[name] = Decoded(frames=[100] * 20, same_best=same.tolist(), words=[50] * 20, errors=errors)
    ms = dict.fromkeys(LOW_RANK, 1.0 / gain) | {low_rank.WHOLE: 1.0}
    return low_rank.Result(
        timings=at_size(16, ms, noise),
        by_variant={"weights": dict.fromkeys(LOW_RANK, 300) | {low_rank.WHOLE: 1000}},
        decoded=decoded,
        changed={name: decoded[name] for name in (low_rank.WHOLE, RETRAINED)},
        layers=[0.7, 0.8, 0.9],
    )


def planted_frames(own=70, copied=50, uneven=0, time=0.8):
    """Of 100 frames in each of ten utterances, how many keep their best senone; `uneven`: plus or minus this."""
    kept = {
        multi_frame.WHOLE: 100,
        **{n: own if n.startswith(OWN) else copied for n in MULTI_FRAMES},
    }
    decoded = {}
    for name, count in kept.items():
        swing = [uneven, -uneven] * 5 if name.startswith(OWN) else [0] * 10
        same = [count + s for s in swing]
        decoded[name] = Decoded(frames=[100] * 10, same_best=same, words=[20] * 10, errors=[5] * 10)
    ms = dict.fromkeys(kept, 0.5) | {multi_frame.WHOLE: 1.0}
    ms |= {multi_frame.variant(OWN, step): time for step in STEPS}
    return NetResult(timings=at_size(16, ms), decoded=decoded)


def planted_mixtures(waiting=0.6, noise=NOISE):
    """A Gaussian takes a unit in a cache and more where `waiting` is memory; batches of 4 share the reading."""
    ms = {}
    for m, d in parameter_bytes.shapes(FEW_PARAMETERS.gaussians, FEW_PARAMETERS.dimensions):
        slower = {16: 1.0, 64: 1 / (1 - waiting)}
        ms[parameter_bytes.variant(m, d, 1)] = {n: 0.01 * n * m * factor for n, factor in slower.items()}
        ms[parameter_bytes.variant(m, d, 4)] = {n: 0.01 * 4 * n * m for n in slower}
    counts = {"gaussians": FEW_PARAMETERS.gaussians, "dimensions": FEW_PARAMETERS.dimensions}
    return SweepResult(timings=timings(ms, noise), counts=counts, cache_bytes={1: 32768})


def planted_decodes(left=0.7, slow=0.1, noise=NOISE):
    """Of a second of speech: the share that is left without scoring, in the shipped recogniser and the slow one."""
    ms = {}
    for name in MODELS:
        share = slow if name == SLOW else left
        parts = {scoring_free.WHOLE: 10.0, FREE: 10.0 * share, SCORING: 10.0 * (1 - share)}
        ms |= {scoring_free.variant(name, part): t for part, t in parts.items()}
    return SweepResult(timings=at_size(RATE, ms, noise))


def planted_ladder(vectors=0.2, eight=0.05, noise=NOISE):
    rungs = {PLAIN: 2.5, "vectors": vectors, "BLAS": 0.3, EIGHT: eight, BATCHED: 0.02}
    loops = {ONE_SUM: 3.0, UNROLLED: 1.0, LIBRARY: 0.1, INTEGERS: 2.0}
    return SweepResult(
        timings=at_size(1, rungs, noise),
        more={"loops": at_size(1, loops, noise)},
        counts={"outputs": 50, "inputs": 20},
        by_variant={"same_best": dict.fromkeys(rungs, 0.95)},
    )


def planted_sparse(small=0.9, csr=0.5, noise=NOISE):
    """`small`: share of weights below 0.1; the sparse products take `csr` of the dense time at 30 %, and so on."""
    ms = {sparse.variant(p, n): {100: float(n)} for p in DENSE for n in FRAMES}
    ms |= {sparse.variant(p, n): {k: n * csr * k / 30 for k in KEPT} for p in SPARSE for n in FRAMES}
    return sparse.Result(
        timings=timings(ms, noise),
        counts={"small": small, "words": 60},
        by_variant={"word_errors": {"whole": 4, "pruned": 9, "retrained": 5}},
        below={"layer 1": [small] * len(LIMITS)},
    )


def counts_of(errors):
    n = len(errors)
    return Decoded(frames=[100] * n, same_best=[50] * n, words=[20] * n, errors=errors)


def planted_students(taught=(3, 4), labels=(6, 5), bundled=False):
    """Errors in 20 words of each of ten utterances, in turns."""
    errors = {TEACHER: [2] * 10, TAUGHT: list(taught) * 5, LABELS: list(labels) * 5}
    return NetResult(
        timings=at_size(16, {TEACHER: 4.0, TAUGHT: 1.0, LABELS: 1.0}),
        decoded={name: counts_of(each) for name, each in errors.items()},
        counts={"bundled": float(bundled)},
    )


def planted_lookups(by_exp=0.1, tree=0.01, noise=NOISE):
    """All Gaussians take 10 ms, the best one less by `by_exp` of that, a look-up `tree` of it."""
    ms = {FULL: 10.0, BEST: 10.0 * (1 - by_exp), "flat 16": 20 * tree, "tree 16": 10.0 * tree}
    facts = ("error", "same_best", "bytes_read", "exps")
    return SweepResult(
        timings=at_size(1, ms, noise),
        by_variant={"codewords": {"flat 16": 16, "tree 16": 16}} | {fact: dict.fromkeys(ms, 0.5) for fact in facts},
    )


def every_way_is_measured(result, items=10):
    ways = exp_cost.ways_of(result)
    assert ways[0] == PYTHON
    assert result.timings.size(f"{PYTHON}, add") == items
    assert result.timings.size("numpy float32, add") == 64
    chart = exp_cost.LAB.picture(result)
    assert [layer.name for layer in chart.layers] == list(exp_cost.OPERATIONS)
    assert chart.x.categories == tuple(ways)


def the_half_of_the_processor_is_run(result):
    assert result.device == ""
    assert result.texts["reason"]
    assert result.timings.cells() == [(variant, 12) for variant in result.timings.variants]
    assert set(result.timings.variants) == set(planted_halves().timings.variants)
    assert 0 < result.counts["asked"] <= result.counts["senones"]
    assert gpu_scoring_search.LAB.judge(result).verdict == "cannot be tried here"


def some_outputs_are_requested(result):
    assert len(result.asked) == 1
    # At the first frame only those that begin a word.
    assert 0 < min(result.asked[0]) <= max(result.asked[0]) <= result.outputs
    assert result.asked[0][0] < np.mean(result.asked[0])


def every_frame_and_word_is_counted(result):
    assert set(result.decoded) == {multi_frame.WHOLE, *MULTI_FRAMES}
    frames = result.decoded[multi_frame.WHOLE].frames
    assert result.decoded[multi_frame.WHOLE].same_best == frames
    for name in MULTI_FRAMES:
        assert (result.decoded[name].frames, result.decoded[name].words) == (frames, [3])
        # The frames that go through the net themselves are scored as without any rule.
        assert result.decoded[name].same_best[0] >= frames[0] // int(name[-1])


def every_batch_at_every_size(result):
    assert result.timings.sizes() == [16, 32, 64]
    assert set(result.timings.variants) == {
        parameter_bytes.variant(m, d, batch) for m, d in parameter_bytes.shapes(5, 3) for batch in (1, 4)
    }


CONTRACTS = {
    "batching": Contract(
        batching.LAB,
        planted_batches,
        false=[{"gain": 0.5}, {"gain": 0.5, "mixtures": 5.0}, {"mixtures": 0.5}],
        noisy=[{"gain": 1.02, "noise": LOUD}],
        figures={
            "net_gain": about(5.0),
            "rows_two_over_one": about(3.0),
            "added_latency_ms_at_4": 30.0,
        },
        drawn=about((1.0, 0.2, 0.2)),
        memory=(batching.Params(gaussians=1), batching.Params(gaussians=1 << 20)),
    ),
    "exp-cost": Contract(
        exp_cost.LAB,
        planted_operations,
        # The loop is taken off.
        true=[{}, {"exp": 1.5, "zip_loop": 4.0}],
        false=[{"exp": 0.5}, {"in_numpy": 0.5}],
        noisy=[{"exp": 1.4, "zip_loop": 0.3, "noise": LOUD}],
        figures={
            "numpy_float32_exp_over_slowest": about(3.0),
            "numpy_float32_exp_ns": about(3000.0),
        },
        more=[
            (
                {"exp": 1.5, "zip_loop": 4.0},
                {
                    "flawed_add_over_exp": about(5.0 / 1.8, 0.05),
                    "repaired_add_over_exp": about(1.0 / 1.5, 0.1),
                },
            )
        ],
        small=exp_cost.Params(elements=64, items=10, seconds=0.0),
        check=every_way_is_measured,
        memory=(exp_cost.Params(elements=64, items=10), exp_cost.Params(elements=10**7)),
    ),
    "exp-share": Contract(
        exp_share.LAB,
        planted_shares,
        false=[{"share_at_64": 0.7}],
        noisy=[{"share_at_1": 0.45, "share_at_64": 0.48, "noise": LOUD}],
        figures={
            "exp_share_at_1": pytest.approx(0.05, abs=0.01),
            "exp_share_at_64": pytest.approx(0.2, abs=0.01),
            "ms_per_frame_at_1": about(20 / 8),
            "ms_per_frame_at_64": about(0.5),
        },
        drawn=pytest.approx((5.0, 20.0), abs=1.0),
        memory=(exp_share.Params(components=8), exp_share.Params(components=128)),
    ),
    "gaussian-selection": Contract(
        gaussian_selection.LAB,
        planted_selection,
        false=[{"gaussians": 0.6}, {"time": 0.7}],
        noisy=[{"time": 0.57, "noise": LOUD}],
        figures={"time_share": about(0.45), "gaussians_fewer_times": about(1 / 0.3)},
        said=[({}, "of 50 words 4 are wrong instead of 1")],
        drawn=about((45.0,) * 4),
        memory=(gaussian_selection.Params(components=8), gaussian_selection.Params(components=128)),
    ),
    "gpu-scoring-search": Contract(
        gpu_scoring_search.LAB,
        planted_halves,
        false=[{"scoring": 1.2}, {"search": 8.0}],
        noisy=[{"scoring": 2.05, "noise": LOUD}],
        impossible=[{"device": ""}],
        figures={"scoring_gain": about(10.0), "search_gain": about(0.8)},
        more=[
            (
                {"device": "", "search": 0.1},
                {
                    "scoring_gain": None,
                    "scoring_threads_gain": about(10 / 5.5),
                    "search_stand_in_gain": about(0.1),
                },
            )
        ],
        said=[({"device": ""}, "torch was built without CUDA")],
        small=gpu_scoring_search.Params(vocabulary=60, frames=12, block=8, seconds=0.0),
        desk=lambda: with_speech(NoDevice),
        stops=False,
        check=the_half_of_the_processor_is_run,
        memory=(gpu_scoring_search.Params(frames=1), gpu_scoring_search.Params(frames=10_000)),
    ),
    "lazy-outputs": Contract(
        lazy_outputs.LAB,
        planted_outputs,
        false=[{"asked": 500}, {"together": 1.3}],
        noisy=[{"together": 0.9, "noise": LOUD}, {"asked": 350, "spread": 300}],
        figures={
            "asked_share": pytest.approx(0.3, abs=0.01),
            "frames_within_25_to_35_share": 1.0,
            "gain_frame_by_frame": about(2.0),
            "best_all_over_best_lazy": about(2.0),
        },
        small=lazy_outputs.Params(vocabulary=60, speech_s=0.1, frames=16, seconds=0.0),
        desk=with_speech,
        stops=False,
        check=some_outputs_are_requested,
    ),
    "low-rank": Contract(
        low_rank.LAB,
        planted_low_rank,
        true=[{}, {"frames": 1}],
        false=[{"lost": 2}, {"gain": 0.7}, {"frames": 3}],
        noisy=[{"gain": 1.03, "noise": LOUD}, {"frames": 2, "uneven": 8}],
        figures={
            "retrained_size_share": about(0.3),
            "retrained_gain": about(3.0),
            "retrained_wer": about(0.2),
        },
    ),
    "multi-frame": Contract(
        multi_frame.LAB,
        planted_frames,
        # What own outputs cost is said and not judged.
        true=[{}, {"time": 1.25}],
        false=[{"own": 45}],
        noisy=[{"own": 51, "uneven": 20}],
        figures={
            "own_less_copied_same_best_1_of_3": about(0.2),
            "own_over_copied_time": about(1.6),
            "copied_1_of_2_gain": about(2.0),
        },
        more=[({"time": 1.25}, {"own_outputs_1_of_4_gain": about(0.8)})],
        said=[({"time": 1.25}, "times as fast as scoring every frame")],
        drawn=about((50.0, 50.0, 50.0, 0.0)),
        small=multi_frame.Params(vocabulary=60, speech_s=0.1, frames=16, seconds=0.0),
        desk=with_speech,
        stops=False,
        check=every_frame_and_word_is_counted,
    ),
    "parameter-bytes": Contract(
        parameter_bytes.LAB,
        planted_mixtures,
        false=[{"waiting": 0.2}],
        noisy=[{"waiting": 0.52, "noise": LOUD}],
        figures={
            "waiting_share": pytest.approx(0.6, abs=0.01),
            "batching_gain": about(2.5),
            "bytes_per_frame": SIZE,
            "dram_bytes_per_s": about(SIZE / 8e-3),
            "flops_per_s_at_batch_4": about(2 * SIZE / 12.8e-3),
        },
        small=FEW_PARAMETERS,
        check=every_batch_at_every_size,
        memory=(
            FEW_PARAMETERS,
            parameter_bytes.Params(senones=1 << 20, gaussians=1024, dimensions=1024),
        ),
    ),
    "scoring-free": Contract(
        scoring_free.LAB,
        planted_decodes,
        false=[{"left": 0.2}],
        noisy=[{"left": 0.48, "noise": LOUD}],
        figures={
            "tied_mixtures_left_share": about(0.7),
            "tied_mixtures_left_share_predicted": pytest.approx(0.7, abs=0.01),
            "continuous_frame_by_frame_speed_up_at_most": about(10),
            "net_rtf": about(0.01),
        },
        drawn=about((10.0, 70.0, 70.0, 70.0)),
        memory=(scoring_free.Params(speech_s=0.1), scoring_free.Params(speech_s=600.0)),
    ),
    "simd-int8": Contract(
        simd_int8.LAB,
        planted_ladder,
        false=[{"vectors": 5.0}, {"eight": 0.6}],
        noisy=[{"eight": 0.2, "noise": LOUD}],
        figures={
            "vectors_over_plain": about(12.5),
            "int8_over_best_float": about(4.0),
            "int8_batched_over_plain": about(125.0),
            "unrolled_over_plain": about(3.0),
        },
        drawn=about((2.5, 0.2, 0.3, 0.05, 0.02)),
    ),
    "sparse": Contract(
        sparse.LAB,
        planted_sparse,
        false=[{"small": 0.5}, {"csr": 1.5}],
        noisy=[{"csr": 0.97, "noise": LOUD}],
        figures={
            "csr_gain_at_30_percent_16_frames": about(2.0),
            "csr_break_even_kept_16_frames": 0.5,
        },
        said=[({}, "4 are wrong before pruning, 9 after it and 5 retrained")],
        memory=(sparse.Params(net="small"), sparse.Params(net="large")),
    ),
    "teacher-student": Contract(
        teacher_student.LAB,
        planted_students,
        false=[{"taught": (6, 5), "labels": (3, 4)}],
        noisy=[{"taught": (2, 8), "labels": (8, 2)}],
        figures={"wer_change": about(-2 / 20), "teacher_over_taught_time": about(4.0)},
        said=[({"bundled": True}, "these very voices")],
        drawn=about((10.0, 17.5, 27.5)),
    ),
    "vq-lookup": Contract(
        vq_lookup.LAB,
        planted_lookups,
        false=[{"by_exp": 0.8}, {"tree": 1.5}],
        noisy=[{"by_exp": 0.55, "noise": LOUD}],
        figures={
            "exp_share_of_saving": pytest.approx(0.1 / 0.99, abs=0.01),
            "tree_16_time_share": about(0.01),
        },
        drawn=about((1e4, 9e3, 200.0, 100.0)),
        memory=(vq_lookup.Params(codewords=16), vq_lookup.Params(codewords=4096)),
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


def test_shares_and_inverses_keep_their_intervals_in_order():
    found = Ratio(0.5, 0.4, 0.8, 0.01)
    assert figures.saved(found) == Ratio(0.5, pytest.approx(0.2), pytest.approx(0.6), 0.01)
    assert figures.inverse(found) == Ratio(2.0, 1.25, 2.5, 0.01)
    assert texts.percent(figures.saved(found)) == "50 % (20 to 60)"
    assert figures.saved(Ratio(0.5)) == Ratio(0.5)
    assert figures.saved(None) is None


def test_both_layouts_give_the_product():
    made = batching.products(30, [1, 2, 5])
    draw = np.random.default_rng(0)
    weights = draw.standard_normal((30, 81), np.float32).astype(float)
    for n in (1, 2, 5):
        right = weights @ draw.standard_normal((n, 81), np.float32).astype(float).T
        np.testing.assert_allclose(made[COLUMNS, n](), right, atol=1e-4)
        np.testing.assert_allclose(made[ROWS, n](), right.T, atol=1e-4)


def test_lists_hold_what_the_operations_make_of_the_values():
    calls = exp_cost.in_python(50)
    values, pairs = (calls[name]() for name in ("nothing", "nothing, in pairs"))
    assert values == pairs
    assert calls["exp"]() == [math.exp(x) for x in values]
    others = [s - x for s, x in zip(calls["add"](), values, strict=True)]
    product = [x * y for x, y in zip(values, others, strict=True)]
    assert calls["multiply"]() == pytest.approx(product)
    assert calls["compare"]() == [x < y for x, y in zip(values, others, strict=True)]


@pytest.mark.parametrize("make", [exp_cost.in_numpy, exp_cost.in_numba, exp_cost.in_torch])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_way_computes_the_same(make, dtype):
    x, y = np.random.default_rng(0).uniform(-5, 5, (2, 70)).astype(dtype)
    right = {"add": x + y, "multiply": x * y, "compare": x < y, "exp": np.exp(x.astype(float))}
    for what, call in make(x, y).items():
        if what in right:
            np.testing.assert_allclose(np.asarray(call()), right[what], rtol=1e-5)


def test_lists_may_be_as_long_as_arrays():
    params = exp_cost.Params(elements=64, items=64, seconds=0.0)
    every_way_is_measured(exp_cost.LAB.measure(params, NoDevice()), items=64)


@pytest.mark.parametrize("streams", [1, 3])
def test_mixtures_in_numpy_are_those_of_float64(streams):
    draw = np.random.default_rng(0)
    gaussians = draw.standard_normal((2, streams, 5, 9, 16)).astype(np.float32)
    features = draw.standard_normal((3, streams * 4)).astype(np.float32)
    made = exp_share.library_variants(gaussians, features)
    x = features.astype(float).reshape(3, streams, 4)
    x = np.concatenate([x**2, x, np.ones((3, streams, 1))], axis=2)
    g = np.einsum("tsk,gsmkl->tsglm", x, gaussians.astype(float)).reshape(3, streams, 32, 5)
    sums, best = np.log(np.exp(g).sum(axis=3)).sum(axis=1), g.max(axis=3).sum(axis=1)
    np.testing.assert_allclose(made[LIBRARY_SUM](), sums, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(made[LIBRARY_BEST](), best, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("senones", "frames"), [(16, 1), (48, 3), (64, 4)])
def test_what_is_timed_is_the_mixtures_scores(senones, frames):
    made = parameter_bytes.Mixtures(64, 5, 3, 4)
    made.scoring(senones, frames)()
    scores = made.scores.ravel()[: frames * senones].reshape(frames, senones)
    parameters = made.parameters[: senones // 16, 0].astype(float)
    g = np.einsum("tk,gmkl->tglm", made.x[:frames, 0].astype(float), parameters)
    right = np.log(np.exp(g).sum(axis=3)).reshape(frames, senones)
    np.testing.assert_allclose(scores, right, rtol=1e-4, atol=1e-4)


def test_every_point_is_a_configuration_and_the_judged_one_is_the_usual():
    base = assign(Config(), {"model": "continuous"})
    points = gaussian_selection.points()
    for some in points.values():
        assert settings.check(assign(base, some)).gmm.selection.enabled
    judged = assign(base, points[JUDGED]).gmm.selection
    assert judged.threshold == Config().gmm.selection.threshold
    assert judged.method == "vq"


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


def test_a_decode_with_scores_that_are_there_finds_the_same_words(bundled_speech):
    samples = audio.load(bundled_speech / "08-kal16-short.flac").samples
    calls = scoring_free.decodes(recogniser_of(), samples)
    words = calls[scoring_free.WHOLE]()
    assert words
    assert calls[SCORING]() > 0
    assert calls[FREE]() == words


def test_the_share_is_that_of_all_frames_together():
    found = lazy_outputs.requested_share([[10, 30], [50], [20, 20, 20]], 100)
    assert found.ratio == pytest.approx(150 / 600)
    assert found.low <= found.ratio <= found.high
    assert lazy_outputs.requested_share([[10, 30]], 100).low is None


@pytest.fixture(scope="module")
def two_layers():
    return net(card(Layer(24), Layer(16), senones=40))


def test_one_layer_at_a_time_keeps_the_best_senones_that_float64_says(two_layers):
    features = np.random.default_rng(0).normal(0, 3, (30, 39)).astype(np.float32)
    kept = low_rank.kept_by_layer(two_layers, features)
    exact = forward(two_layers, features).argmax(axis=1)
    some = [shrink.low_rank(two_layers, 0.3, only=i) for i in range(3)]
    assert kept == pytest.approx([(forward(one, features).argmax(axis=1) == exact).mean() for one in some])
    # One stretch alone is factored.
    lowest, _, last = some
    assert len(lowest.card.layers) == len(last.card.layers) == len(two_layers.card.layers) + 1
    for one, name in ((lowest, "heads.0.weight"), (last, "layers.0.weight")):
        np.testing.assert_array_equal(one.tensors[name], two_layers.tensors[name])


def test_frames_are_counted_over_speech_and_its_copies():
    """A net agrees with itself everywhere; without copies another one as often as float64 says."""
    desk = with_speech()
    params = low_rank.Params(net="base", retrained="small", reference="base", speech_s=0.1, copies=0)
    once = low_rank.of_changed(params, desk)
    features = _scoring.features_of(sphinx.load(sphinx.default_directory()), desk, 0.1)[0]
    base, small = (forward(nets.load(nets.find(name)), features).argmax(axis=1) for name in ("base", "small"))
    assert once[low_rank.WHOLE].same_best == once[low_rank.WHOLE].frames == [len(features)]
    assert once[RETRAINED].same_best[0] == pytest.approx((base == small).sum(), abs=1)
    again = low_rank.of_changed(msgspec.structs.replace(params, copies=2), desk)[low_rank.WHOLE]
    assert again.same_best == again.frames
    assert again.frames[0] > 2.5 * once[low_rank.WHOLE].frames[0]


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 8), (4, 29)])
@pytest.mark.parametrize("loop", [kernels.plain, kernels.unrolled])
def test_loops_give_the_product(shape, loop):
    draw = np.random.default_rng(0)
    weight, x = draw.standard_normal(shape, np.float32), draw.random(shape[1], np.float32)
    out = np.full(shape[0], np.nan, np.float32)
    loop(weight, x, out)
    np.testing.assert_allclose(out, weight.astype(float) @ x, atol=1e-5)


def test_every_loop_of_the_ladder_runs_and_rungs_are_its_presets_in_order():
    weight = np.random.default_rng(1).standard_normal((20, 9), np.float32)
    assert list(simd_int8.loops_of(weight)) == [ONE_SUM, UNROLLED, LIBRARY, INTEGERS]
    for call in simd_int8.loops_of(weight).values():
        call()
    steps = [presets.load(name).step for name in PRESETS.values()]
    assert steps == sorted(steps)
    assert presets.load(PRESETS[EIGHT]).config.dnn.dtype == "int8"


@pytest.fixture(scope="module")
def small():
    return net(card(Layer(24), senones=40))


def test_the_distribution_counts_weights(small):
    layers = sparse.matrices(small)
    assert list(layers) == ["layer 1", "output"]
    assert layers["layer 1"] is small.tensors["layers.0.weight"]
    weight = layers["output"]
    for limit, share in zip(LIMITS, sparse.below(weight), strict=True):
        assert share == pytest.approx(sum(abs(w) < limit for w in weight.ravel().tolist()) / weight.size)
    assert sparse.share_below(weight, 1e9) == 1.0


@pytest.mark.parametrize("kept", [30, 50, 100])
def test_every_product_gives_what_its_net_computes(small, kept):
    made = sparse.products_of(small, kept)
    nets = {"csr": shrink.sparse(small, kept / 100), "blocks": shrink.blocks(small, kept / 100)}
    # Dense products have all weights.
    nets |= dict.fromkeys(DENSE, small) if kept == 100 else {}
    assert set(made) == {sparse.variant(product, n) for product in nets for n in FRAMES}
    for product, some in nets.items():
        for n in FRAMES:
            call = made[sparse.variant(product, n)]
            call()
            x, out = call.args
            right = np.column_stack(some.head(0)).astype(float) @ x
            np.testing.assert_allclose(out, right, rtol=1e-3, atol=1e-3)


def test_both_students_have_the_same_shape():
    taught, labels = (nets.read_card(nets.find(NETS[name]).with_suffix(".json")) for name in (TAUGHT, LABELS))
    assert taught.shapes == labels.shapes


def test_differences_are_those_of_all_words_together():
    one, other = counts_of([3, 1, 4, 1]), counts_of([2, 7, 1, 8])
    change = _nets.word_change(one, other)
    assert change.ratio == pytest.approx((9 - 18) / 80)
    assert change.low < change.ratio < change.high
    assert _nets.best_change(one, other).ratio == 0.0
    silent = Decoded(frames=[9], same_best=[9], words=[0], errors=[0])
    assert _nets.word_change(silent, silent) is None
    assert _nets.word_error_rate(silent) is None
    assert _nets.points(change).startswith("−11.2 points (")


def test_each_lookup_scores_as_brute_force_does(tmp_path):
    model = sphinx.load(sphinx_writer.write_continuous(tmp_path, 1, 20))
    family = ContinuousGmm(pack(model), 1)
    gmm = assign(Config(), {"gmm.selection.codewords": 16}).gmm
    table = vq_table.Continuous(family).prepare(gmm, quietly, never)
    scorers, p = vq_lookup.scorers(family, {16: table}), family.parameters
    features = (10 * np.random.default_rng(0).standard_normal((7, p.dim))).astype(np.float32)
    x = family.expand(features).astype(float).copy()
    g = np.einsum("tsk,gsmkl->tsglm", x, p.gaussians.astype(float))
    g = g.reshape(len(x), p.n_streams, -1, p.n_components)[:, :, : p.n_senones]
    best = g.max(axis=3)
    full = (np.log(np.exp(g - best[..., None]).sum(axis=3)) + best).sum(axis=1)
    nearest = table.codebook
    found = {name: np.empty((7, p.n_senones), np.float32) for name in scorers}
    for name, score in scorers.items():
        score(features, found[name])
    np.testing.assert_allclose(found[FULL], full, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(found[BEST], best.sum(axis=1), rtol=1e-3, atol=1e-2)
    values = x[:, 0, p.dim : 2 * p.dim]
    distance = ((values[:, None] - nearest.words[0]) ** 2 * nearest.scale[0]).sum(axis=2)
    right = table.scores[0, distance.argmin(axis=1)]
    np.testing.assert_allclose(found["flat 16"], right, rtol=1e-5)
    # Down the tree another codeword may be found, but it is one of them.
    rows = table.scores[0]
    assert all((np.abs(rows - row).max(axis=1) < 1e-3).any() for row in found["tree 16"])
