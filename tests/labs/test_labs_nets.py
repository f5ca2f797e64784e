"""Labs of neural nets: what is planted for them, and what they time against plain computations."""

import msgspec
import numpy as np
import pytest

from pipelines.labs import _scoring, lazy_outputs, low_rank, multi_frame, sparse, teacher_student
from pipelines.labs._scoring import Decoded, NetResult
from pipelines.labs.low_rank import RETRAINED, SHARES
from pipelines.labs.multi_frame import OWN, RULES, STEPS
from pipelines.labs.sparse import DENSE, FRAMES, KEPT, LIMITS, SPARSE
from pipelines.labs.teacher_student import LABELS, TAUGHT, TEACHER
from pipelines.models import nets, shrink, sphinx
from pipelines.models.nets import Layer
from tests.each import each
from tests.labs.contract import LOUD, NOISE, Contract, about, at_size, near, timings, with_speech
from tests.pipelines.net_files import card, forward, net

MULTI_FRAMES = [multi_frame.variant(rule, step) for rule in RULES for step in STEPS]
LOW_RANK = [low_rank.WHOLE, *(f"{share:g}" for share in SHARES), RETRAINED]


def planted_outputs(asked=300, alone=0.5, together=0.5, noise=NOISE, spread=10):
    """Of 1 000 outputs `asked` are requested; lazy variants take the given parts of the time of all."""
    draw = np.random.default_rng(0)
    counts = [(asked + draw.integers(-spread, spread + 1, 40)).tolist() for _ in range(8)]
    shares = dict(zip(lazy_outputs.BLOCKS, (alone, together), strict=True))
    ms = {
        variant: {n: (1.0 if variant == lazy_outputs.WHOLE else share) / n for n, share in shares.items()}
        for variant in lazy_outputs.VARIANTS
    }
    return lazy_outputs.LazyOutputsResult(timings=timings(ms, noise), outputs=1000, asked=counts, frames=1)


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
    return low_rank.LowRankResult(
        timings=at_size(16, ms, noise),
        by_variant={"weights": dict.fromkeys(LOW_RANK, 300) | {low_rank.WHOLE: 1000}},
        decoded=decoded,
        changed={name: decoded[name] for name in (low_rank.WHOLE, RETRAINED)},
        layers=[0.7, 0.8, 0.9],
    )


def planted_frames(own=70, copied=50, uneven=0, time=0.8):
    """Of 100 frames in each of ten utterances, how many keep their best senone; `uneven`: plus or minus this."""
    kept = {multi_frame.WHOLE: 100, **{n: own if n.startswith(OWN) else copied for n in MULTI_FRAMES}}
    decoded = {}
    for name, count in kept.items():
        swing = [uneven, -uneven] * 5 if name.startswith(OWN) else [0] * 10
        same = [count + s for s in swing]
        decoded[name] = Decoded(frames=[100] * 10, same_best=same, words=[20] * 10, errors=[5] * 10)
    ms = dict.fromkeys(kept, 0.5) | {multi_frame.WHOLE: 1.0}
    ms |= {multi_frame.variant(OWN, step): time for step in STEPS}
    return NetResult(timings=at_size(16, ms), decoded=decoded)


def planted_sparse(small=0.9, csr=0.5, noise=NOISE):
    """`small`: share of weights below 0.1; the sparse products take `csr` of the dense time at 30 %, and so on."""
    ms = {sparse.variant(p, n): {100: float(n)} for p in DENSE for n in FRAMES}
    ms |= {sparse.variant(p, n): {k: n * csr * k / 30 for k in KEPT} for p in SPARSE for n in FRAMES}
    return sparse.SparseResult(
        timings=timings(ms, noise),
        counts={"small": small, "words": 60},
        by_variant={"word_errors": {"whole": 4, "pruned": 9, "retrained": 5}},
        below={"layer 1": [small] * len(LIMITS)},
    )


def counts_of(errors):
    n = len(errors)
    return Decoded(frames=[100] * n, same_best=[50] * n, words=[20] * n, errors=errors)


def planted_students(taught=(3, 4), labels=(6, 5), bundled=False):
    errors = {TEACHER: [2] * 10, TAUGHT: list(taught) * 5, LABELS: list(labels) * 5}
    return NetResult(
        timings=at_size(16, {TEACHER: 4.0, TAUGHT: 1.0, LABELS: 1.0}),
        decoded={name: counts_of(each) for name, each in errors.items()},
        counts={"bundled": float(bundled)},
    )


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


CONTRACTS = {
    "lazy-outputs": Contract(
        lazy_outputs.LAB,
        planted_outputs,
        false=[{"asked": 500}, {"together": 1.3}],
        noisy=[{"together": 0.9, "noise": LOUD}, {"asked": 350, "spread": 300}],
        figures=near(
            asked_share=pytest.approx(0.3, abs=0.01),
            frames_within_25_to_35_share=1.0,
            gain_frame_by_frame=2.0,
            best_all_over_best_lazy=2.0,
        ),
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
        figures=near(retrained_size_share=0.3, retrained_gain=3.0, retrained_wer=0.2),
    ),
    "multi-frame": Contract(
        multi_frame.LAB,
        planted_frames,
        # What own outputs cost is said and not judged.
        true=[{}, {"time": 1.25}],
        false=[{"own": 45}],
        noisy=[{"own": 51, "uneven": 20}],
        figures=near(own_less_copied_same_best_1_of_3=0.2, own_over_copied_time=1.6, copied_1_of_2_gain=2.0),
        more=[({"time": 1.25}, near(own_outputs_1_of_4_gain=0.8))],
        said=[({"time": 1.25}, "times as fast as scoring every frame")],
        drawn=about((50.0, 50.0, 50.0, 0.0)),
        small=multi_frame.Params(vocabulary=60, speech_s=0.1, frames=16, seconds=0.0),
        desk=with_speech,
        stops=False,
        check=every_frame_and_word_is_counted,
    ),
    "sparse": Contract(
        sparse.LAB,
        planted_sparse,
        false=[{"small": 0.5}, {"csr": 1.5}],
        noisy=[{"csr": 0.97, "noise": LOUD}],
        figures=near(csr_gain_at_30_percent_16_frames=2.0, csr_break_even_kept_16_frames=0.5),
        said=[({}, "4 are wrong before pruning, 9 after it and 5 retrained")],
    ),
    "teacher-student": Contract(
        teacher_student.LAB,
        planted_students,
        false=[{"taught": (6, 5), "labels": (3, 4)}],
        noisy=[{"taught": (2, 8), "labels": (8, 2)}],
        figures=near(wer_change=-2 / 20, teacher_over_taught_time=4.0),
        said=[({"bundled": True}, "these very voices")],
        drawn=about((10.0, 17.5, 27.5)),
    ),
}


def test_one_layer_at_a_time_keeps_the_best_senones_that_float64_says():
    two_layers = net(card(Layer(24), Layer(16), senones=40))
    features = np.random.default_rng(0).normal(0, 3, (30, 39)).astype(np.float32)
    kept = low_rank.kept_by_layer(two_layers, features)
    exact = forward(two_layers, features).argmax(axis=1)
    some = [shrink.low_rank(two_layers, 0.3, only=i) for i in range(3)]
    assert kept == pytest.approx([(forward(one, features).argmax(axis=1) == exact).mean() for one in some])


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


@each("kept", [30, 50, 100])
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


def test_differences_are_those_of_all_words_together():
    one, other = counts_of([3, 1, 4, 1]), counts_of([2, 7, 1, 8])
    change = _scoring.word_change(one, other)
    assert change.ratio == pytest.approx((9 - 18) / 80)
    assert change.low < change.ratio < change.high
    assert _scoring.best_change(one, other).ratio == 0.0
    silent = Decoded(frames=[9], same_best=[9], words=[0], errors=[0])
    assert _scoring.word_change(silent, silent) is None
    assert silent.wer is None
    assert _scoring.points(change).startswith("−11.2 points (")
