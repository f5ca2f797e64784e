"""The graph's file, its checks, and the exchange with OpenFst."""

import contextlib
import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from search_graphs import cost_of, random_graph
from search_graphs import settings as decoder_settings

from pipelines.search.graph import topology
from pipelines.search.graph.openfst import from_arcs, from_kaldifst, to_kaldifst
from pipelines.search.graph.wfst import ARRAYS, Graph, GraphError, load, save
from pipelines.search.viterbi import Viterbi
from profiler.arrays import ArrayError, check_offsets
from profiler.files import cache
from tests.each import each
from tests.graph_fst import assert_equal, fst_of, loopless_of


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("graphs") / "g.graph"


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 100_000))
def test_save_and_load(path, seed):
    graph = dataclasses.replace(random_graph(seed, all_final=False), blank=seed % 7)
    save(graph, path)
    again = load(path)
    for name, _ in ARRAYS:
        np.testing.assert_array_equal(getattr(again, name), getattr(graph, name))
    for name in ("start", "n_epsilon_states", "words", "n_arcs", "blank"):
        assert getattr(again, name) == getattr(graph, name)


def test_files_that_are_no_graph_are_refused(path):
    path.unlink(missing_ok=True)
    with pytest.raises(GraphError, match="cannot be read"):
        load(path)
    path.write_bytes(b"SQLite format 3\0" * 20)
    with pytest.raises(GraphError, match="no file of this program's cache"):
        load(path)
    save(random_graph(5, all_final=False), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 13):
        path.write_bytes(whole[:length])
        with pytest.raises(GraphError):
            load(path)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_changed_bytes_are_refused(path, data):
    """Any, and so +1 in one place with −1 in the next, which leaves sums as they are."""
    save(random_graph(5, all_final=False), path)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 2))
    change = data.draw(st.integers(1, 255))
    content[at] = (content[at] + change) % 256
    if data.draw(st.booleans()):
        content[at + 1] = (content[at + 1] - change) % 256
    path.write_bytes(content)
    with pytest.raises(GraphError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@each(
    "field, value, message",
    [
        ("n_epsilon_states", 0, "do not come first"),
        ("start", 99, "start state"),
        ("n_senones", 3, "senone"),
        ("words", ["a"], "word"),
        ("words", 7, "arrays are not as announced"),
        ("", 0, "arrays are not as announced"),
    ],
)
def test_facts_that_lie_are_refused(path, field, value, message):
    save(next(g for g in (random_graph(s, all_final=False) for s in range(99)) if g.n_epsilon_states > 1), path)
    kept = cache.read(path)
    arrays = dict(kept.arrays)
    if not field:
        del arrays["final"]
    cache.write(path, arrays, {**kept.about, field: value})
    with pytest.raises(GraphError, match=message):
        load(path)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_altered_arrays_whose_checksum_fits_are_sound_or_refused(path, data):
    """Numbers of the arrays changed before they are saved: what loads can be decoded with."""
    whole = random_graph(data.draw(st.integers(0, 20)), all_final=False)
    arrays = {name: getattr(whole, name).copy() for name in ("states", "arcs", "final", "pron_first")}
    for _ in range(data.draw(st.integers(1, 4))):
        words = arrays[data.draw(st.sampled_from(sorted(arrays)))].view(np.int32)
        at = data.draw(st.integers(0, max(len(words) - 1, 0)))
        edges = st.sampled_from([-1, 0, 1, 2**31 - 1, -(2**31), 0x7F800000, 0x7F7FFFFF])
        near = st.integers(-2, 2).map(lambda step, was=words[at : at + 1]: int(was.sum()) + step)
        value = data.draw(st.one_of(edges, near, st.integers(-(2**31), 2**31 - 1)))
        words[at : at + 1] = np.clip(value, -(2**31), 2**31 - 1)
    # Unchecked: what a stranger who knows the format would save.
    forged = object.__new__(Graph)
    forged.__dict__.update(vars(whole) | arrays)
    save(forged, path)
    with contextlib.suppress(GraphError):
        graph = load(path)
        decoder = Viterbi(graph, decoder_settings(lattice=True))
        decoder.start(0)
        decoder.advance(np.zeros((5, graph.n_senones), np.float32), 0)
        decoder.finish()


@each(
    "field, at, value, message",
    [
        ("states", ("first", 1), 10**6, "follow each other"),
        ("states", ("loop_label", 0), 99, "self-loop has a senone"),
        ("states", ("loop_label", 0), -1, "self-loop has a senone"),
        ("states", ("loop_weight", 0), 3e38, "no number that a path could add up"),
        ("arcs", ("target", 0), -1, "leads to a state"),
        ("arcs", ("ilabel", 0), 2**30, "a senone that there is not"),
        ("arcs", ("olabel", 0), 6, "a word that there is not"),
        ("arcs", ("weight", 0), np.nan, "no number"),
        ("final", 0, -np.inf, "final weights"),
        ("pron_first", 1, 2**30, "pronunciations"),
        ("senone_phone", 0, 200, "senones"),
    ],
)
def test_a_graph_that_leads_out_of_its_arrays_cannot_be_made(field, at, value, message):
    graph = random_graph(3, all_final=False)
    array = getattr(graph, field).copy()
    if isinstance(at, tuple):
        array[at[0]][at[1]] = value
    else:
        array[at] = value
    with pytest.raises(GraphError, match=message):
        dataclasses.replace(graph, **{field: array})
    with pytest.raises(ValueError, match="read-only"):
        getattr(graph, field)[0] = getattr(graph, field)[1]


def test_arrays_that_lead_nowhere_are_refused():
    # Starts so far apart that their difference overflows.
    starts = np.array([0, 2**31 - 1, -(2**31), 0], np.int32)
    last = np.array([0, 3, 3, 3, 3, 3], np.int32)
    with pytest.raises(GraphError, match="pronunciations"):
        dataclasses.replace(random_graph(3, all_final=False), pron_first=last, phone_first=starts)
    with pytest.raises(GraphError, match="its blank is none of its senones"):
        dataclasses.replace(random_graph(3, all_final=False), blank=7)
    with pytest.raises(ArrayError, match="not a rising list"):
        check_offsets("starts", starts, 0)
    # Of transducers.
    sound = fst_of(random_graph(3, all_final=False))
    for field, at, value in (("first", 1, 99), ("target", 0, -1), ("ilabel", 0, -5)):
        array = getattr(sound, field).copy()
        array[at] = value
        with pytest.raises(ArrayError):
            dataclasses.replace(sound, **{field: array})
    with pytest.raises(ArrayError, match="source"):
        from_arcs(1, 0, np.zeros(1, "f4"), *(np.array([1]) for _ in range(5)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 100_000))
def test_openfst_round_trip(seed):
    fst = fst_of(random_graph(seed, all_final=False))
    assert_equal(from_kaldifst(to_kaldifst(fst)), fst)


@settings(max_examples=60, deadline=None)
@example(8859, 1)  # a graph without any arc
@given(st.integers(0, 100_000), st.integers(1, 3))
def test_folding_epsilons_keeps_every_path(seed, n_words):
    graph = random_graph(seed, all_final=False)
    # Folding runs before self-loops are added.
    plain = loopless_of(graph)
    folded = topology.fold_epsilons(plain)
    assert folded.n_arcs <= plain.n_arcs
    rng = np.random.default_rng(seed)
    for _ in range(8):
        labels = rng.integers(1, graph.n_senones + 1, n_words).tolist()
        assert cost_of(plain, labels) == pytest.approx(cost_of(folded, labels), rel=1e-5, abs=1e-4)
