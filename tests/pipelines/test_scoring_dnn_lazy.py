"""Lazy evaluation of nets against brute force: kernels, bookkeeping over blocks and changes, words, work counts."""

from typing import Any

import numpy as np
import pytest
from numba import njit

from pipelines.config import Config, assign, presets
from pipelines.models.nets import Layer
from pipelines.scoring import build_scorer, senones, with_context
from pipelines.scoring.dnn import rows
from pipelines.scoring.dnn.dense import ACTIVE_STAGE
from pipelines.scoring.dnn.rows import AHEAD, ByteRows, FloatRows, room
from pipelines.scoring.simd import dot_products
from pipelines.scoring.simd.byte_products import PAIR_PRODUCTS, Bytes
from profiler.arrays import Array
from profiler.spans import SPAN, NullLane, Recorder
from tests.each import each
from tests.pipelines.net_files import card, forward, net, write
from tests.pipelines.whole_runs import model

SENONES = 60
WIDTHS = (1, 15, 16, 17, 64, 65, 130)
UNTOUCHED = np.float32(7)
LACKS = "this processor has no products of pairs"


def some(count: int) -> Array:
    return np.random.default_rng(0).permutation(SENONES)[:count].astype(np.int64)


def around(values: Array) -> Array:
    """The same in rows as the kernels want them; behind each lies what must not count."""
    placed = room(*values.shape, values.dtype)
    placed[:, : values.shape[1]] = values
    return placed


def check_rows(made: FloatRows | ByteRows, hidden: Array, expected: Array) -> None:
    """Any number of senones at any frames: what is asked for is right, and nothing else is written."""
    for count in (0, 1, 3, 4, 5, 8, 13, SENONES):
        for first, last in ((0, 1), (2, 4), (3, 6), (1, 5), (0, 9), (4, 4)):
            senones, scores = some(count), np.full((9, SENONES), UNTOUCHED)
            made.score(around(hidden), first, last, senones, scores)
            cells = np.ix_(range(first, last), senones)
            np.testing.assert_allclose(scores[cells], expected[cells], rtol=1e-5, atol=1e-5)
            scores[cells] = UNTOUCHED
            assert (scores == UNTOUCHED).all()


@each("width", WIDTHS)
def test_rows_are_dot_products(width):
    rng = np.random.default_rng(width)
    weight = rng.standard_normal((SENONES, width + 1)).astype(np.float32)
    values = np.column_stack([rng.standard_normal((9, width)), np.ones(9)]).astype("f")
    check_rows(FloatRows(weight), values, values.astype(np.float64) @ weight.T.astype(np.float64))


def integers(width: int) -> tuple[Array, Array, Array]:
    """Weights, activations and their exact products; among them the largest that there are."""
    rng = np.random.default_rng(width)
    weight, hidden = (rng.integers(-127, 128, (n, width), np.int8) for n in (SENONES, 9))
    weight[0], weight[1], hidden[0], hidden[1] = 127, -127, 127, -127
    return weight, hidden, hidden.astype(np.int64) @ weight.T.astype(np.int64)


@each("width", WIDTHS)
def test_rows_of_integers_are_exact(width):
    weight, hidden, products = integers(width)
    rng = np.random.default_rng(width)
    scale, bias = (rng.random(SENONES).astype(np.float32) for _ in range(2))
    scales = rng.random(9).astype(np.float32)
    expected = products * scales[:, None].astype(np.float64) * scale + bias
    check_rows(ByteRows(weight, scale, bias, scales), hidden, expected)


@pytest.mark.parametrize(
    "pairs", [False, pytest.param(True, marks=pytest.mark.skipif(not PAIR_PRODUCTS, reason=LACKS))]
)
def test_a_processor_without_the_byte_product_computes_the_same(pairs):
    weight, hidden, products = integers(64)
    tile = dot_products.make_chosen_rows(Bytes(one_instruction=False, pairs=pairs), [2])

    @njit
    def two_frames(places, weights, x, out, bias, scales, frames):  # type: ignore[no-untyped-def]
        tile(
            2,
            places.ctypes.data,
            weights.ctypes.data,
            weights.shape[1],
            (x.ctypes.data, x.strides[0]),
            (out.ctypes.data, out.strides[0]),
            (bias.ctypes.data, scales.ctypes.data, frames.ctypes.data),
        )

    places = np.arange(dot_products.LATER + dot_products.ROWS)
    ones, frames = np.ones(SENONES, np.float32), np.ones((2, 2), np.float32)
    frames.view(np.int32)[:, 1] = 128 * hidden[:2].sum(1, dtype=np.int32)
    out = np.zeros((2, SENONES), np.float32)
    two_frames(places, (weight + np.int16(128)).astype(np.uint8), hidden, out, ones, ones, frames)
    np.testing.assert_array_equal(out[:, : rows.ROWS], products[:2, : rows.ROWS] + 1)
    assert not out[:, rows.ROWS :].any()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Any]:
    """A net that is quick, and the configuration that names it."""
    made = net(card(Layer(16), Layer(8, relu=False), senones=model().n_senones))
    path = write(tmp_path_factory.mktemp("net"), made, np.float32)
    return assign(presets.load("dnn").config, {"dnn.net": str(path)}), made


def speech(frames: int, seed: int = 5) -> Array:
    return np.random.default_rng(seed).normal(0, 3, (frames, 39)).astype(np.float32)


def asking(frames: int, seed: int = 0) -> list[Array]:
    """What a search might want: senones come and go, and some frames want none."""
    rng = np.random.default_rng(seed)
    wants = rng.random(model().n_senones) < 0.3
    found = []
    for t in range(frames):
        wants ^= rng.random(len(wants)) < 0.1
        found.append(np.flatnonzero(wants) if t % 13 != 5 else np.empty(0, np.int64))
    return found


Plan = list[tuple[int, dict[str, Any]]]  # Frames of a block, and the settings that act from it on


def expected_rows(whole: Array, active: list[Array], plan: Plan) -> list[Array]:
    """The requested scores of one utterance, frame by frame."""
    row, known = np.zeros(whole.shape[1]), np.zeros(whole.shape[1], bool)
    found, at, settings = [], 0, {"dnn.senones": "all", "frames.skip": 1}
    for frames, changes in plan:
        settings = settings | changes
        lazy, skip = settings["dnn.senones"] != "all", settings["frames.skip"]
        for t in range(at, at + frames):
            enough = known.any() if lazy else known.all()
            if skip == 1 or t % skip == 0 or (t == at and not enough):
                known[:] = False
            new = np.flatnonzero(~known)
            if lazy:
                new = active[t][~known[active[t]]]
            row[new], known[new] = whole[t, new], True
            found.append(row.copy())
        at += frames
    return found


def seen_rows(scorer: Any, base: Config, features: Array, active: list[Array], plan: Plan) -> Any:
    """The same from the scorer."""
    padded, beyond = with_context(features, scorer.context), sum(scorer.context)
    found, at, config = [], 0, base
    scorer.reset()
    for frames, changes in plan:
        if changes:
            config = assign(config, changes)
            scorer.configure(config)
        state = scorer.prepare(padded[at : at + frames + beyond], at, NullLane())
        for t in range(frames):
            found.append(scorer.frame(state, t, active[at + t]).copy())
        at += frames
    return found


def alike(seen: list[Array], expected: list[Array], active: list[Array], atol: float) -> None:
    assert len(seen) == len(expected) == len(active)
    for t, needed in enumerate(active):
        np.testing.assert_allclose(seen[t][needed], expected[t][needed], atol=atol, err_msg=str(t))


@each("rule", ["active", "active-ahead"])
@each("block", [1, 3, 4, 16, 64])
def test_requested_scores_are_exact_to_the_end_of_every_utterance(small, rule, block):
    base, made = small
    base = assign(base, {"dnn.senones": rule, "block": block})
    scorer = build_scorer(base, model())
    for seed, frames in enumerate((37, 5, 66)):  # one after the other, by the same scorer
        features, active = speech(frames, seed), asking(frames, seed)
        blocks = [min(block, frames - at) for at in range(0, frames, block)]
        plan: Plan = [(n, {}) for n in blocks]
        seen = seen_rows(scorer, base, features, active, plan)
        alike(seen, list(forward(made, features)), active, 1e-3)


def test_a_warm_scorer_has_called_what_its_first_frames_call(small, monkeypatch):
    due, called = senones.due, []
    monkeypatch.setattr(senones, "due", lambda *given: called.append(1) or due(*given))
    build_scorer(small[0], model()).warm_up()
    assert called


RULES = ("all", "active", "active-ahead")


@each("seed", range(6))
def test_changes_between_blocks_leave_requested_scores_right(small, seed):
    base, made = small
    rng = np.random.default_rng(seed)
    base = assign(base, {"dnn.senones": "all", "frames.skip": 1})
    scorer = build_scorer(base, model())
    for _ in range(3):
        plan: Plan = []
        for _ in range(9):
            changes: dict[str, Any] = {}
            if rng.random() < 0.6:
                changes["dnn.senones"] = str(rng.choice(RULES))
            if rng.random() < 0.4:
                changes["frames.skip"] = int(rng.integers(1, 5))
            plan.append((int(rng.integers(1, 12)), changes))
        plan[0] = (plan[0][0], {"dnn.senones": str(rng.choice(RULES)), "frames.skip": 1})
        frames = sum(n for n, _ in plan)
        features, active = speech(frames, seed), asking(frames, seed)
        expected = expected_rows(forward(made, features), active, plan)
        alike(seen_rows(scorer, base, features, active, plan), expected, active, 1e-3)


@each("dtype", ["fp32", "int8"])
@each("rule", ["active", "active-ahead"])
@each("block", [1, 6, 16])
def test_work_counts_say_what_was_computed_and_read(small, rule, block, dtype):
    base = assign(small[0], {"dnn.senones": rule, "dnn.dtype": dtype, "block": block})
    scorer, active = build_scorer(base, model()), asking(32)
    recorder = Recorder()
    scorer.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    padded, beyond = with_context(speech(32), scorer.context), sum(scorer.context)
    for at in range(0, 32, block):
        n = min(block, 32 - at)
        state = scorer.prepare(padded[at : at + n + beyond], at, lane)
        for t in range(n):
            scorer.frame(state, t, active[at + t])
    spans = np.frombuffer(lane.take(), SPAN)
    spans = spans[spans["stage"] == recorder.stage_id(ACTIVE_STAGE)]
    ahead = AHEAD if rule == "active-ahead" else 1
    computed = read = 0
    for at in range(0, 32, block):
        end = min(at + block, 32)
        until = np.zeros(model().n_senones)
        for t in range(at, end):
            for senone in active[t]:
                if until[senone] <= t:
                    until[senone] = min(t + ahead, end)
                    computed += until[senone] - t
                    read += 1
    assert (spans["work0"].sum(), spans["work1"].sum()) == (computed, read)
    law = scorer.costs()[ACTIVE_STAGE]
    assert (law.bytes_min.of(spans) <= law.bytes_max.of(spans)).all()
    size = {"fp32": 16 * 4, "int8": 64}[dtype]  # 8 inputs fill one vector
    assert law.bytes_min.of(spans).sum() == pytest.approx(size * read + 4 * computed)
    kind = {"fp32": "gemm", "int8": "gemm:int8"}[dtype]
    assert law.operations[kind].of(spans).sum() == 2 * (16 if dtype == "fp32" else 64) * computed
