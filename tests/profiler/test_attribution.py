"""Attribution against hand-made roofs: 100 Gop/s, exp 1 Gop/s, 100 GB/s to 1 MiB and 25 GB/s at 64 MiB."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiler_sessions import ROOF_TABLE, roof, spans_of

from profiler.analysis.attribution import Evidence, Roofs, judge, roofs, split
from profiler.machine.roofs.table import BANDWIDTH, RATE, RoofTable
from profiler.spans import SPAN, Cost, Linear


def one(duration: int, work: int = 0, frames: int = 16) -> np.ndarray:
    return spans_of([(0, duration, 0, 0, frames, work)])


def cost(
    gemm: float = 0.0, exp: float = 0.0, low: float = 0.0, high: float = 0.0, size: float = 1e3
) -> Cost:
    return Cost({"gemm": Linear(gemm), "exp": Linear(exp)}, Linear(low), Linear(high), size)


def times(law: Cost, roof_table: RoofTable = ROOF_TABLE) -> Roofs:
    """The roofs of a law whose fixed part alone counts."""
    return roofs(law, roof_table)


def evidence(
    duration: int, law: Cost, calls: int = 1, roof_table: RoofTable = ROOF_TABLE
) -> Evidence:
    t = roofs(law, roof_table)
    counts = (calls, 16.0 * calls, (0.0, 0.0, 0.0))
    return Evidence(
        float(duration * calls),
        calls,
        16.0 * calls,
        t.arithmetic.total(*counts),
        t.traffic_min.total(*counts),
        t.traffic_max.total(*counts),
        max(t.min_arithmetic.total(*counts), t.min_traffic.total(*counts)),
        law.bytes_min.total(*counts),
        law.bytes_max.total(*counts),
        roof_table.overhead_ns("numpy"),
        t.complete,
        law.working_set_bytes,
        "arcs",
        1000.0 * calls,
        law.scattered,
    )


def test_operations_of_each_class_use_their_own_roof() -> None:
    assert times(cost(gemm=1e6, exp=1e3)).arithmetic.fixed == pytest.approx(1e6 / 100 + 1e3 / 1)


def test_traffic_uses_the_plateau_of_the_working_set() -> None:
    def traffic(size: int) -> float:
        return times(cost(low=1e6, size=size)).traffic_min.fixed

    assert traffic(1 << 20) == pytest.approx(1e6 / 100)
    assert traffic(1 << 26) == traffic(1 << 30) == pytest.approx(1e6 / 25)
    # Half-way on the logarithm of the size the time per byte is the mean of the two.
    assert traffic(1 << 23) == pytest.approx(1e6 * (1 / 100 + 1 / 25) / 2)


@given(st.tuples(*[st.integers(0, 10**6)] * 5))
def test_roofs_are_the_law_divided_by_the_peaks(counts: tuple[int, ...]) -> None:
    frames, w0, w1, w2, fixed = counts
    law = Cost(
        {"gemm": Linear(fixed, 2.0, (3.0, 0.0, 1.0)), "exp": Linear(0.0, 0.0, (0.0, 5.0, 0.0))},
        Linear(fixed, 1.0, (1.0, 1.0, 1.0)),
        working_set_bytes=1.0,
    )
    spans = spans_of([(0, 1, 0, 0, frames, w0, w1, w2)])
    at = roofs(law, ROOF_TABLE)
    gemm, exp = (law.operations[name].of(spans)[0] for name in ("gemm", "exp"))
    assert at.arithmetic.of(spans)[0] == pytest.approx(gemm / 100 + exp)
    assert at.min_arithmetic.of(spans)[0] == pytest.approx((gemm / 100 + exp) / 1.1)
    assert at.traffic_min.of(spans)[0] == pytest.approx(law.bytes_min.of(spans)[0] / 100)


@pytest.mark.parametrize(
    ("duration", "law", "compute", "memory"),
    [
        (20_000, cost(gemm=1e6), 10_000, 0),
        (20_000, cost(gemm=1e6, low=1.5e6), 10_000, 5_000),
        (20_000, cost(gemm=1e6, low=0.5e6), 10_000, 0),
        (12_000, cost(gemm=1e6, low=9e6), 10_000, 2_000),
        (5_000, cost(gemm=1e6, low=9e6), 5_000, 0),
        (5_000, cost(low=1e3, high=1e9), 0, 10),
    ],
)
def test_split_follows_the_rule(duration: int, law: Cost, compute: float, memory: float) -> None:
    got = split(one(duration), law, ROOF_TABLE)
    assert (got[0][0], got[1][0]) == (pytest.approx(compute), pytest.approx(memory))


def test_without_law_or_roofs_everything_is_unexplained() -> None:
    assert split(one(100), None, ROOF_TABLE)[0].tolist() == [0.0]
    assert split(one(100), cost(gemm=1e6), RoofTable())[0].tolist() == [0.0]


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 2**32 - 1)), min_size=1, max_size=40),
    st.tuples(*[st.floats(0, 1e4)] * 4),
    st.integers(1, 39),
)
def test_split_is_within_the_span_and_the_same_in_pieces(
    rows: list[tuple[int, int]], factors: tuple[float, ...], cut: int
) -> None:
    spans = np.zeros(len(rows), SPAN)
    spans["duration_ns"], spans["work0"] = np.array(rows).T
    gemm, exp, low, fixed = factors
    law = Cost(
        {"gemm": Linear(per_work=(gemm, 0, 0)), "exp": Linear(per_work=(exp, 0, 0))},
        Linear(fixed, per_work=(low, 0, 0)),
        Linear(2 * fixed),
        1e6,
    )
    compute, memory = split(spans, law, ROOF_TABLE)
    assert (compute >= 0).all()
    assert (memory >= 0).all()
    assert (compute + memory <= spans["duration_ns"] * (1 + 1e-12)).all()
    pieces = [split(part, law, ROOF_TABLE) for part in (spans[:cut], spans[cut:])]
    assert np.array_equal(np.concatenate([p[0] for p in pieces]), compute)
    assert np.array_equal(np.concatenate([p[1] for p in pieces]), memory)


@pytest.mark.parametrize(
    ("duration", "law", "calls", "verdict", "grade"),
    [
        (20_000, cost(gemm=1.5e6), 1, "compute-bound", "B"),
        (20_000, cost(gemm=1.5e6, low=1e5, high=1e6), 1, "compute-bound", "C"),
        (20_000, cost(gemm=0.2e6, low=1.5e6, high=2e6), 1, "memory-bound", "C"),
        (20_000, cost(gemm=1.5e6, low=1e5, high=1.6e6), 1, "undecided", "C"),
        (20_000, cost(gemm=0.2e6, low=1e5, high=1.6e6), 1, "undecided", "C"),
        (20_000, cost(gemm=0.2e6, low=1e5, high=2e5), 1, "unexplained", "C"),
        (900, cost(gemm=1e3), 50, "overhead-bound", "B"),
        (20_000, Cost({"int8": Linear(1e6), "gemm": Linear(1.5e6)}), 1, "compute-bound", "D"),
    ],
)
def test_verdicts(duration: int, law: Cost, calls: int, verdict: str, grade: str) -> None:
    judged = judge(evidence(duration, law, calls))
    assert (judged.verdict, judged.evidence, judged.defect) == (verdict, grade, None)
    assert judged.sentence.endswith(".")
    assert judged.sentence[0].isupper()


def test_the_sentence_is_plain() -> None:
    judged = judge(evidence(900_000, cost(gemm=30e6, low=27e6, high=27e6, size=1 << 27)))
    assert judged.sentence == (
        "Moves 27 MB per block at 30 GB/s; arithmetic alone would take 300 µs of the 900 µs; "
        "those bytes take 1.08 ms at this machine's bandwidth."
    )


def test_above_the_roof_within_its_spread_is_no_defect() -> None:
    # The best repeat of the calibration was 10 % faster than the median.
    assert judge(evidence(10_000, cost(gemm=1.05e6))).defect is None
    assert "cost law or a roof is wrong" in (judge(evidence(10_000, cost(gemm=1.2e6))).defect or "")
    assert "is wrong" in (judge(evidence(10_000, cost(low=1.2e6))).defect or "")


def test_what_is_not_known_is_said_and_not_zero() -> None:
    unknown = judge(Evidence(5_000.0, 5, 5))
    assert (unknown.verdict, unknown.evidence) == (None, "–")
    assert unknown.sentence == "Takes 1 µs per frame; what it computes is not modelled."
    reasoned = judge(Evidence(5_000.0, 5, 5, reason="a library reads the file"))
    assert reasoned.sentence == "Takes 1 µs per frame; a library reads the file."
    unmeasured = judge(Evidence(5_000.0, 5, 80, bytes_min=100.0))
    assert "roofs were not measured" in unmeasured.sentence
    assert judge(Evidence(0.0, 0, 0)).verdict is None


def test_scattered_data_is_named_as_what_no_roof_counts() -> None:
    law = Cost({"gemm": Linear(1e4)}, Linear(1e5), Linear(1e5), 1e6, scattered=True)
    judged = judge(evidence(20_000, law))
    assert judged.verdict == "unexplained"
    assert "each of its arcs takes 20 ns: its data lie scattered over 1 MB" in judged.sentence
    assert "latency" in judged.sentence
    plain = judge(evidence(20_000, Cost({"gemm": Linear(1e4)}, Linear(1e5), Linear(1e5), 1e6)))
    assert "latency" not in plain.sentence


def test_the_law_says_how_many_threads_share_the_work() -> None:
    roof_table = RoofTable(
        (
            *ROOF_TABLE.roofs,
            roof(RATE, "gemm", 400e9, threads=4),
            roof(BANDWIDTH, "read", 50e9, 1 << 26, 4),
        )
    )

    def gemm(threads: int) -> float:
        return times(Cost({"gemm": Linear(1e6)}, threads=threads), roof_table).arithmetic.fixed

    assert gemm(1) == gemm(3) == pytest.approx(1e4)
    assert gemm(8) == pytest.approx(2.5e3)
    law = Cost({}, Linear(1e6), Linear(1e6), 1e9, threads=4)
    assert times(law, roof_table).traffic_min.fixed == pytest.approx(2e4)


def test_a_class_names_its_library_and_falls_back() -> None:
    roof_table = RoofTable((*ROOF_TABLE.roofs, roof(RATE, "exp.numba", 0.25e9)))
    for name, wanted in (("exp.numba", 4e3), ("exp.numpy", 1e3), ("exp", 1e3)):
        got = times(Cost({name: Linear(1e3)}), roof_table).arithmetic.fixed
        assert got == pytest.approx(wanted)


def test_a_law_survives_storage_and_refuses_what_is_none() -> None:
    law = Cost({"gemm": Linear(1.0)}, threads=3, scattered=True, unmodelled="because")
    assert Cost.from_dict(law.as_dict()) == law
    old = {k: v for k, v in law.as_dict().items() if k not in {"threads", "scattered"}}
    assert Cost.from_dict(old).threads == 1
    for threads in (0, -1, 1 << 20, "2", 1.5):
        with pytest.raises(ValueError, match="threads of a cost"):
            Cost.from_dict({**law.as_dict(), "threads": threads})
