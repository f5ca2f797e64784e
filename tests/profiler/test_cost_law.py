"""Cost laws at hand-made roofs: what each kind of term takes, to the digit.

Every roof spreads by 10 %: its best repeat lies a tenth above the median, its worst a tenth below.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiler_sessions import ROOF_TABLE, roof, spans_of

from profiler.analysis.categories import LAW_PARTS
from profiler.analysis.law import FIRST_CACHE, Law, law_of, needed
from profiler.analysis.parts import split
from profiler.costs import ACCESS, CALL, KERNEL, MOST_TERMS, STREAM, Cost, Linear, Term
from profiler.machine.roofs import table
from profiler.machine.roofs.table import BANDWIDTH, LATENCY, OVERHEAD, RATE, Roof, RoofTable

TILE = "tile/16"
ROOFS = RoofTable(
    (
        *ROOF_TABLE.roofs,
        roof(table.KERNEL, TILE, 1e9),
        roof(table.KERNEL, TILE, 0.5e9, 8 << 20),
        roof(LATENCY, "chase", 2.0, FIRST_CACHE),
        roof(LATENCY, "chase", 100.0, 1 << 26),
        roof(LATENCY, "gather", 1.0, FIRST_CACHE),
        roof(LATENCY, "gather", 11.0, 1 << 26),
        roof(OVERHEAD, "kernel call", 1000.0),
    )
)


def fixed(amount: float) -> Linear:
    return Linear(fixed=amount)


def of(*terms: Term, gemm: float = 0.0, threads: int = 1) -> Cost:
    return Cost({"gemm": fixed(gemm)} if gemm else {}, threads=threads, terms=terms)


def times(cost: Cost, roof_table: RoofTable = ROOFS) -> list[dict[str, float]]:
    """The least, the likely and the most ns of a law whose fixed part alone counts, by part."""
    ends = law_of(cost, roof_table).times(lambda law: np.float64(law.fixed))
    return [dict(zip(LAW_PARTS, end.tolist(), strict=True)) for end in ends]


def parts(**ns: float) -> dict[str, float]:
    return {name: pytest.approx(ns.get(name, 0.0)) for name in LAW_PARTS}


def test_arithmetic_at_peak_is_taken_off_the_kernels_own_instructions() -> None:
    least, likely, most = times(of(Term(KERNEL, TILE, fixed(5e4)), gemm=1e6))
    assert likely == parts(arithmetic=10_000, instructions=40_000)
    # The best instructions beyond the worst arithmetic, and the other way round.
    assert least == parts(arithmetic=1e4 / 1.1, instructions=5e4 / 1.1 - 1e4 / 0.9)
    assert most == parts(arithmetic=1e4 / 0.9, instructions=5e4 / 0.9 - 1e4 / 1.1)


def test_arithmetic_is_never_more_than_the_kernels_own_time() -> None:
    _, likely, _ = times(of(Term(KERNEL, TILE, fixed(6e3)), gemm=1e6))
    assert likely == parts(arithmetic=6_000)


def test_without_a_kernel_arithmetic_is_all_there_is_of_it() -> None:
    _, likely, _ = times(Cost({"gemm": fixed(1e6), "exp": fixed(1e3)}, terms=()))
    assert likely == parts(arithmetic=1e6 / 100 + 1e3)


def test_a_kernel_over_much_data_takes_longer_by_its_memory() -> None:
    least, likely, most = times(of(Term(KERNEL, TILE, fixed(1e4), 8 << 20)))
    assert likely == parts(instructions=10_000, bandwidth=10_000)
    assert least["bandwidth"] == pytest.approx(1e4 * (2 / 1.1 - 1))
    assert most["bandwidth"] == pytest.approx(1e4 * (2 / 0.9 - 1))


def test_a_kernel_that_was_as_fast_over_much_data_has_no_memory_part() -> None:
    fast = ROOFS.merged(RoofTable((roof(table.KERNEL, TILE, 1.2e9, 8 << 20),)))
    least, likely, _ = times(of(Term(KERNEL, TILE, fixed(1e4), 8 << 20)), fast)
    assert likely["bandwidth"] == least["bandwidth"] == 0
    # Nor does it take anything off that of another.
    kernels = Term(KERNEL, TILE, fixed(1e4), 8 << 20), Term(KERNEL, "slow", fixed(1e4), 8 << 20)
    both = fast.merged(
        RoofTable((roof(table.KERNEL, "slow", 1e9), roof(table.KERNEL, "slow", 0.5e9, 8 << 20)))
    )
    assert times(of(*kernels), both)[1]["bandwidth"] == pytest.approx(10_000)


def test_a_kernel_that_was_faster_over_much_data_has_no_slower_instructions() -> None:
    for rate, ns in ((1.25e9, 8_000), (1e9, 10_000), (0.8e9, 10_000)):
        known = ROOFS.merged(RoofTable((roof(table.KERNEL, TILE, rate, 8 << 20),)))
        least, likely, most = times(of(Term(KERNEL, TILE, fixed(1e4), 8 << 20)), known)
        ends = [end["instructions"] for end in (least, likely, most)]
        assert ends == pytest.approx([ns / 1.1, ns, ns / 0.9])


def test_instructions_are_as_uncertain_as_in_the_first_cache_however_wide_the_others() -> None:
    wide = roof(table.KERNEL, TILE, 1.25e9, 2 << 20)
    known = ROOFS.merged(RoofTable((replace(wide, low=1e8, high=9e9),)))
    term = Term(KERNEL, TILE, fixed(1e4), 8 << 20, nearest=2 << 20)
    ends = [end["instructions"] for end in times(of(term), known)]
    assert ends == pytest.approx([8_000 / 1.1, 8_000, 8_000 / 0.9])


def test_data_come_no_sooner_from_far_than_from_near_by() -> None:
    term = Term(KERNEL, TILE, fixed(1e4), 8 << 20, nearest=2 << 20)
    far = replace(roof(table.KERNEL, TILE, 0.5e9, 8 << 20), high=9e9)

    def least(rate: float, term: Term = term) -> float:
        near = roof(table.KERNEL, TILE, rate, 2 << 20)
        return times(of(term), ROOFS.merged(RoofTable((far, near))))[0]["bandwidth"]

    assert least(0.8e9) == pytest.approx(12_500 / 1.1 - 10_000)
    assert least(0.8e9, replace(term, nearest=0.0)) == 0
    # Found slower near by than far away: neither tells of the other.
    assert least(0.4e9) == 0


def test_what_a_shared_cache_may_have_kept_is_told_beside_the_least() -> None:
    term = Term(KERNEL, TILE, fixed(1e4), 8 << 20, nearest=2 << 20)
    far = 1e4 * (2 / 1.1 - 1)

    def kept(rate: float, term: Term = term) -> float:
        known = ROOFS.merged(RoofTable((roof(table.KERNEL, TILE, rate, 2 << 20),)))
        assert times(of(term), known)[0]["bandwidth"] == pytest.approx(far)
        return law_of(of(term), known).kept.fixed

    assert kept(0.8e9) == pytest.approx(far - (12_500 / 1.1 - 10_000))
    # As fast there as within the first cache; slower than over all of the data.
    assert kept(1e9) == pytest.approx(far)
    assert kept(0.4e9) == 0
    assert kept(0.8e9, replace(term, nearest=0.0)) == 0
    # Not measured there.
    assert law_of(of(term), ROOFS).kept.fixed == 0
    fast = ROOFS.merged(RoofTable((roof(table.KERNEL, TILE, 2e9, 2 << 20),)))
    likely = times(of(term), fast)[1]
    assert likely == parts(instructions=5_000, bandwidth=15_000), "no loop has slower instructions"


def test_a_span_that_took_less_than_its_least_found_data_in_a_cache() -> None:
    known = ROOFS.merged(RoofTable((roof(table.KERNEL, TILE, 0.8e9, 2 << 20),)))
    cost = of(Term(KERNEL, TILE, fixed(1e4), 8 << 20, nearest=2 << 20))
    core, far, near = 1e4 / 1.1, 1e4 * (2 / 1.1 - 1), 12_500 / 1.1 - 10_000
    spans = spans_of([(0, round(core + far) + 1, 0, 0, 1), (0, round(core + far) - 1, 0, 0, 1)])
    found = split(spans, cost, known)
    assert found.least.sum(axis=0).tolist() == pytest.approx([core + far, core + near])
    # On a slower machine its memory is not nearer.
    slow = split(spans, cost, known, slowness=np.full((2, 2), 3.0))
    assert slow.least.tolist() == found.least.tolist()


def test_streams_count_what_they_take_beyond_the_first_cache() -> None:
    least, likely, most = times(of(Term(STREAM, "read", fixed(1e6), 1 << 26)))
    assert likely == parts(bandwidth=1e6 * (1 / 25 - 1 / 100))
    assert least["bandwidth"] == pytest.approx(1e6 * (1 / 27.5 - 1 / 100))
    assert most["bandwidth"] == pytest.approx(1e6 * (1 / 22.5 - 1 / 100))
    for size in (0, FIRST_CACHE, 1 << 20):
        assert times(of(Term(STREAM, "read", fixed(1e6), size)))[1] == parts()
    # Half-way on the logarithm of the size the time per byte is the mean of the two.
    half = times(of(Term(STREAM, "read", fixed(1e6), 1 << 23)))[1]
    assert half == parts(bandwidth=1e6 * (1 / 25 - 1 / 100) / 2)


def test_on_a_device_every_byte_of_a_stream_counts() -> None:
    there = RoofTable((roof(BANDWIDTH, "read@cuda", 500e9, 1 << 26),))
    cost = Cost(terms=(Term(STREAM, "read", fixed(1e6), 1 << 26),), device="cuda")
    assert times(cost, there)[1] == parts(bandwidth=1e6 / 500)


def test_streams_may_hide_behind_instructions_and_then_take_least() -> None:
    stream = Term(STREAM, "read", fixed(1e6), 1 << 26)
    shown = 1e6 * (1 / 27.5 - 1 / 100)
    for units, wanted in ((1e4, shown - 1e4), (1e5, 0.0)):
        least, likely, _ = times(of(Term(KERNEL, TILE, fixed(units)), stream))
        assert least["bandwidth"] == pytest.approx(wanted)
        assert likely["bandwidth"] == pytest.approx(30_000)


def test_scattered_accesses_count_what_they_take_beyond_a_hit() -> None:
    for name, each in (("chase", 98.0), ("gather", 10.0)):
        least, likely, most = times(of(Term(ACCESS, name, fixed(50), 1 << 26)))
        assert likely == parts(latency=50 * each)
        assert least["latency"] < likely["latency"] < most["latency"]
        assert times(of(Term(ACCESS, name, fixed(50), 1000)))[1] == parts()
    # 16 KiB and 64 MiB are 12 doublings apart, 1 MiB lies half-way.
    middle = times(of(Term(ACCESS, "chase", fixed(50), 1 << 20)))[1]
    assert middle == parts(latency=50 * 49.0)


def test_units_that_each_meet_scattered_lines_wait_for_what_their_kernel_takes_longer() -> None:
    _, likely, most = times(of(Term(ACCESS, TILE, fixed(0), 8 << 20, most=fixed(1e4))))
    assert likely == parts(latency=5_000)
    assert most["latency"] == pytest.approx(1e4 * (2 / 0.9 - 1))
    unknown = of(Term(ACCESS, "another", fixed(1e4), 8 << 20))
    assert times(unknown)[1] == parts()
    assert law_of(unknown, ROOFS).missing == ("another",)


def test_calls_have_their_own_part() -> None:
    calls = Term(CALL, "kernel call", fixed(2)), Term(CALL, "numpy", fixed(3))
    least, likely, most = times(of(*calls))
    assert likely == parts(calls=2 * 1000 + 3 * 500)
    assert (least, most) == (parts(calls=0.9 * 3500), parts(calls=1.1 * 3500))


@pytest.mark.parametrize(
    ("kind", "name", "size", "part", "each"),
    [
        (KERNEL, TILE, 0, "instructions", 1.0),
        (STREAM, "read", 1 << 26, "bandwidth", 0.03),
        (ACCESS, "chase", 1 << 26, "latency", 98.0),
        (CALL, "kernel call", 0, "calls", 1000.0),
    ],
)
def test_a_count_known_as_an_interval_widens_the_time(
    kind: str, name: str, size: float, part: str, each: float
) -> None:
    exact = times(of(Term(kind, name, fixed(100), size)))
    least, likely, most = times(of(Term(kind, name, fixed(100), size, fixed(300))))
    assert likely == parts(**{part: 200 * each})
    assert least == exact[0]
    assert most[part] == pytest.approx(3 * exact[2][part])


def test_a_loop_may_be_known_by_heart() -> None:
    sure = Term(KERNEL, TILE, Linear(900.0))
    loop = Term(KERNEL, TILE, Linear(900.0), most=Linear(1000.0, 10.0), by_heart=0.3)
    assert law_of(Cost(terms=(sure,)), ROOFS).by_heart == Linear()
    learned = law_of(Cost(terms=(sure, loop)), ROOFS).by_heart
    assert learned.as_list()[:2] == pytest.approx([300.0, 3.0])
    exact = law_of(Cost(terms=(replace(loop, most=None),)), ROOFS).by_heart
    assert exact.fixed == pytest.approx(270.0)


@pytest.mark.parametrize(
    "term",
    [
        Term(KERNEL, "tile/2", fixed(1e4)),
        Term(STREAM, "write", fixed(1e4), 1 << 26),
        Term(ACCESS, "leap", fixed(1e4), 1 << 26),
        Term(CALL, "torch", fixed(1e4)),
    ],
)
def test_what_was_not_measured_is_named_and_takes_nothing(term: Term) -> None:
    law = law_of(of(term), ROOFS)
    assert law.missing == (term.roof,)
    assert times(of(term))[2] == parts()


def test_what_several_terms_lack_is_named_once() -> None:
    cost = of(Term(KERNEL, "other/16", fixed(1.0)), Term(KERNEL, "other/16", fixed(2.0)))
    assert law_of(cost, ROOFS).missing == ("other/16",)


def test_a_kernel_measured_at_one_end_says_which_end_lacks() -> None:
    near = RoofTable((roof(table.KERNEL, TILE, 1e9),))
    law = law_of(of(Term(KERNEL, TILE, fixed(1e4), 8 << 20), gemm=1.0), near)
    assert law.missing == ("gemm", f"{TILE} over {8 << 20} bytes")
    assert law.core.mid.fixed == pytest.approx(1e4)


def test_a_law_without_terms_streams_its_bytes() -> None:
    old = Cost({}, fixed(1e6), fixed(3e6), 1 << 26)
    assert times(old)[1] == parts(bandwidth=2e6 * 0.03)
    # Nothing said of the largest traffic: then the least is what there is.
    exact = Cost({}, fixed(1e6), working_set_bytes=1 << 26)
    assert times(exact)[1] == parts(bandwidth=1e6 * 0.03)


@given(st.tuples(*[st.integers(0, 10**6)] * 5))
def test_laws_follow_the_counts_of_each_span(counts: tuple[int, ...]) -> None:
    frames, w0, w1, w2, some = counts
    units = Linear(some, 2.0, (3.0, 0.0, 1.0))
    cost = of(Term(KERNEL, TILE, units), Term(CALL, "kernel call", Linear(per_frame=1.0)))
    spans = spans_of([(0, 1, 0, 0, frames, w0, w1, w2)])
    law: Law = law_of(cost, ROOFS)
    _, likely, _ = law.times(lambda each: each.of(spans))
    assert likely[:, 0].tolist() == pytest.approx(
        [0, some + 2 * frames + 3 * w0 + w2, 0, 0, 1000 * frames]
    )


def test_the_law_says_how_many_threads_share_the_work() -> None:
    more = ROOFS.merged(
        RoofTable((roof(RATE, "gemm", 400e9, threads=4), roof(table.KERNEL, TILE, 3e9, threads=4)))
    )

    def likely(threads: int) -> dict[str, float]:
        return times(of(Term(KERNEL, TILE, fixed(6e4)), gemm=1e6, threads=threads), more)[1]

    assert likely(1) == likely(3) == parts(arithmetic=10_000, instructions=50_000)
    assert likely(8) == parts(arithmetic=2_500, instructions=17_500)


def test_a_class_names_its_library_and_falls_back() -> None:
    some = RoofTable((*ROOF_TABLE.roofs, roof(RATE, "exp.numba", 0.25e9)))
    for name, wanted in (("exp.numba", 4e3), ("exp.numpy", 1e3), ("exp", 1e3)):
        got = times(Cost({name: fixed(1e3)}), some)[1]
        assert got == parts(arithmetic=wanted)


def test_roofs_of_its_own_are_what_a_law_needs_measured() -> None:
    tile, call = Term(KERNEL, TILE, fixed(1)), Term(CALL, "kernel call", fixed(1))
    over = Term(KERNEL, TILE, fixed(9), 8 << 20)
    others = Term(STREAM, "read", fixed(1)), Term(ACCESS, "chase", fixed(1))
    costs = [of(tile, call, *others, threads=2), of(over, threads=2), Cost(), of(tile, threads=2)]
    assert needed(costs) == [(tile, 2), (call, 1), (over, 2)]


def test_other_numbers_than_float32_have_their_peak_measured_where_a_law_counts_them() -> None:
    each = fixed(1e6)
    costs = [
        Cost({"gemm:int8": each, "gemm": each, "fma": each}, threads=2),
        Cost({"gemm:float16@cuda": each, "gemm.torch:float16": each}, device="cuda"),
    ]
    assert needed(costs) == [(Term(KERNEL, "gemm:int8", each), 2)]
    assert law_of(costs[0], ROOFS).missing == ("gemm:int8", "fma")
    own, library = roof(table.KERNEL, "gemm:int8", 200e9), roof(RATE, "gemm.torch", 400e9)
    for roofs, ns in (((own,), 5_000), ((own, replace(library, dtype="int8")), 2_500)):
        found = times(Cost({"gemm:int8": each}), RoofTable(roofs))[1]
        assert found == parts(arithmetic=ns), "the better of the two is the peak"


def test_a_law_survives_storage_and_refuses_what_is_none() -> None:
    terms = (
        Term(KERNEL, TILE, Linear(1.0, 2.0, (3.0, 0.0, 0.0)), 1e6, fixed(2)),
        Term(CALL, "numpy", fixed(1)),
        Term(KERNEL, TILE, fixed(1), 1e6, nearest=1e5, by_heart=0.25),
    )
    law = Cost({"gemm": Linear(1.0)}, threads=3, scattered=True, unmodelled="why", terms=terms)
    for kept in (law, Cost(terms=()), Cost()):
        assert Cost.from_dict(kept.as_dict()) == kept
    old = {k: v for k, v in law.as_dict().items() if k not in {"threads", "scattered", "terms"}}
    assert (Cost.from_dict(old).threads, Cost.from_dict(old).terms) == (1, None)
    shorter = {**law.as_dict(), "terms": [term.as_list()[:5] for term in terms]}
    assert Cost.from_dict(shorter).terms == (
        *terms[:2],
        replace(terms[2], nearest=0.0, by_heart=0.0),
    )
    for threads in (0, -1, 1 << 20, "2", 1.5):
        with pytest.raises(ValueError, match="threads of a cost"):
            Cost.from_dict({**law.as_dict(), "threads": threads})


GOOD = [CALL, "numpy", [0, 0, 0, 0, 0], 0, None]


@pytest.mark.parametrize(
    "terms",
    [
        {},
        "terms",
        [GOOD] * (MOST_TERMS + 1),
        [[]],
        [GOOD[:4]],
        [["guess", *GOOD[1:]]],
        [[["kernel"], *GOOD[1:]]],
        [[*GOOD[:2], [0, 0, 0, 0], 0, None]],
        [[*GOOD[:2], [0, 0, 0, 0, 1e30], 0, None]],
        [[*GOOD[:2], [0, 0, 0, 0, "1"], 0, None]],
        [[*GOOD[:3], -1, None]],
        [[*GOOD[:3], 2**63, None]],
        [[*GOOD[:3], float("nan"), None]],
        [[*GOOD[:3], "8", None]],
        [[*GOOD[:4], 7]],
        [[*GOOD, "8"]],
        [[*GOOD, -1]],
        [[*GOOD, 2**63]],
        [[*GOOD, 0, "0"]],
        [[*GOOD, 0, -0.1]],
        [[*GOOD, 0, 1.1]],
        [[*GOOD, 0, float("nan")]],
        [[*GOOD, 0, 0, 0]],
    ],
)
def test_hostile_terms_are_refused_in_one_sentence(terms: object) -> None:
    with pytest.raises(ValueError, match=r"term|cost law") as refusal:
        Cost.from_dict({**Cost().as_dict(), "terms": terms})
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 200


def test_as_many_terms_as_allowed_are_read() -> None:
    read = Cost.from_dict({**Cost().as_dict(), "terms": [GOOD] * MOST_TERMS})
    assert read.terms == (Term(CALL, "numpy", Linear()),) * MOST_TERMS


def test_what_comes_off_leaves_least_where_it_is_most() -> None:
    table = RoofTable(
        (
            Roof(OVERHEAD, "whole", "", 1, 0, 100.0, 90.0, 120.0, "ns"),
            Roof(OVERHEAD, "part", "", 1, 0, 30.0, 20.0, 50.0, "ns"),
        )
    )
    cost = Cost(terms=(Term(CALL, "whole", Linear(1.0)), Term(CALL, "part", Linear(-1.0))))
    calls = law_of(cost, table).calls
    assert [end.fixed for end in calls] == [90 - 50, 100 - 30, 120 - 20]


def test_a_difference_that_is_never_below_nothing_takes_least_where_its_unit_does() -> None:
    """Rows less those that share their frames: as many as there are, each in 20 to 50 ns."""
    table = RoofTable((Roof(OVERHEAD, "row", "", 1, 0, 30.0, 20.0, 50.0, "ns"),))
    rest = Linear(per_work=(-1 / 3, 4 / 3, 0.0))
    calls = law_of(Cost(terms=(Term(CALL, "row", rest),)), table).calls
    assert [end.total(1, 1, (6.0, 6.0, 0.0)) for end in calls] == pytest.approx([120, 180, 300])


def test_a_call_takes_as_long_as_one_after_so_much_was_read() -> None:
    table = RoofTable(
        tuple(
            Roof(OVERHEAD, "call", "", 1, size, ns, ns, ns, "ns")
            for size, ns in ((0, 100.0), (1 << 20, 300.0))
        )
    )
    terms = [Term(CALL, "call", Linear(1.0), size) for size in (0, 1 << 20, 1 << 22)]
    assert [law_of(Cost(terms=(term,)), table).calls[1].fixed for term in terms] == [100, 300, 0]
    assert law_of(Cost(terms=(terms[2],)), table).missing == ("call",)
    # Only a call after other data waits for what these have pushed out.
    assert [law_of(Cost(terms=(term,)), table).after_others.fixed for term in terms] == [0, 300, 0]
