"""The graph's file, its checks, and the exchange with OpenFst."""

import struct
import zlib

import kaldifst
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from search_graphs import random_graph

from pipelines.search import topology
from pipelines.search.openfst import from_arcs, from_kaldifst, read, to_kaldifst
from pipelines.search.wfst import VERSION, GraphError, load, save

ARRAYS = (
    "states",
    "arcs",
    "final",
    "pron_first",
    "phone_first",
    "pron_phones",
    "senone_phone",
    "senone_state",
    "filler",
)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 100_000))
def test_save_and_load(tmp_path_factory, seed):
    graph = random_graph(seed, all_final=False)
    path = tmp_path_factory.getbasetemp() / f"{seed}.graph"
    save(graph, path)
    again = load(path)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(again, name), getattr(graph, name))
    assert (again.start, again.n_epsilon_states) == (graph.start, graph.n_epsilon_states)
    assert (again.words, again.n_arcs) == (graph.words, graph.n_arcs)
    path.unlink()


def test_saving_leaves_no_temporary_file(tmp_path):
    save(random_graph(1, all_final=False), tmp_path / "g.graph")
    assert [p.name for p in tmp_path.iterdir()] == ["g.graph"]
    with pytest.raises(OSError, match="nowhere"):
        save(random_graph(1, all_final=False), tmp_path / "nowhere" / "g.graph")


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / "g.graph"
    save(random_graph(5, all_final=False), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 13):
        path.write_bytes(whole[:length])
        with pytest.raises(GraphError):
            load(path)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_flipped_bytes_are_refused_or_harmless(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "flipped.graph"
    whole = random_graph(5, all_final=False)
    save(whole, path)
    content = bytearray(path.read_bytes())
    header_end = 20 + struct.unpack_from("<I", content, 12)[0]
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    problem = ""
    try:
        graph = load(path)
    except GraphError as error:
        problem = str(error)
    if problem:
        assert str(path) in problem
        assert "\n" not in problem
        return
    # Only what lies between the arrays may change unseen.
    assert at >= header_end
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(graph, name), getattr(whole, name))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("n_epsilon_states", 0, "do not come first"),
        ("start", 99, "start state"),
        ("n_senones", 3, "senone"),
        ("words", ["a"], "word"),
        ("arrays", {}, "arrays are not as announced"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path, field, value, message):
    import json

    path = tmp_path / "g.graph"
    graph = next(
        g for g in (random_graph(s, all_final=False) for s in range(99)) if g.n_epsilon_states > 1
    )
    save(graph, path)
    content = path.read_bytes()
    length = struct.unpack_from("<I", content, 12)[0]
    header = json.loads(content[20 : 20 + length])
    header[field] = value
    body = content[-header["bytes"] :]
    raw = json.dumps(header).encode()
    start = -(-(20 + len(raw)) // 64) * 64
    preamble = struct.pack("<8sIII", b"ASRSGRPH", VERSION, len(raw), zlib.crc32(raw))
    path.write_bytes((preamble + raw).ljust(start, b"\0") + body)
    with pytest.raises(GraphError, match=message):
        load(path)


def test_foreign_missing_and_newer_files(tmp_path):
    path = tmp_path / "g.graph"
    with pytest.raises(GraphError, match="cannot be read"):
        load(path)
    path.write_bytes(b"SQLite format 3\0" * 20)
    with pytest.raises(GraphError, match="not a search graph"):
        load(path)
    path.write_bytes(struct.pack("<8sIII", b"ASRSGRPH", 7, 0, 0))
    with pytest.raises(GraphError, match="version 7"):
        load(path)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 100_000))
def test_openfst_round_trip(seed):
    fst = random_graph(seed, all_final=False).to_fst()
    again = from_kaldifst(to_kaldifst(fst))
    assert again.start == fst.start
    for name in ("final", "first", "ilabel", "olabel", "weight", "target"):
        np.testing.assert_array_equal(getattr(again, name), getattr(fst, name))


def test_openfst_sees_the_same_states(tmp_path):
    fst = from_arcs(
        2,
        1,
        np.array([0.5, np.inf], "f4"),
        np.array([1, 1]),
        np.array([3, 4]),
        np.array([5, 0]),
        np.array([0.25, 1.5]),
        np.array([0, 1]),
    )
    there = to_kaldifst(fst)
    assert (there.start, there.num_states) == (1, 2)
    arcs = [
        (a.ilabel, a.olabel, a.weight.value, a.nextstate) for a in kaldifst.ArcIterator(there, 1)
    ]
    assert arcs == [(3, 5, 0.25, 0), (4, 0, 1.5, 1)]
    path = tmp_path / "x.fst"
    there.write(str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(ValueError, match="cut short"):
        read(path)


@settings(max_examples=60, deadline=None)
@example(8859, 1)  # a graph without any arc
@given(st.integers(0, 100_000), st.integers(1, 3))
def test_folding_epsilons_keeps_every_path(seed, n_words):
    """Costs of random label sequences are the same before and after."""
    graph = random_graph(seed, all_final=False)
    states = graph.states
    fst = graph.to_fst()
    # Without self-loops: folding runs before they are added.
    keep = fst.target != fst.source
    plain = from_arcs(
        fst.n_states,
        fst.start,
        fst.final,
        fst.source[keep],
        fst.ilabel[keep],
        fst.olabel[keep],
        fst.weight[keep],
        fst.target[keep],
    )
    folded = topology.fold_epsilons(plain)
    assert folded.n_arcs <= plain.n_arcs
    assert len(states) == graph.n_states + 1
    rng = np.random.default_rng(seed)
    for _ in range(8):
        labels = rng.integers(1, graph.n_senones + 1, n_words).tolist()
        assert cost(plain, labels) == pytest.approx(cost(folded, labels), rel=1e-5, abs=1e-5)


def cost(fst, labels):
    """Cost of the best path that reads `labels`, by plain dynamic programming."""
    alive = {(0, fst.start): 0.0}
    best = np.inf
    # An epsilon never leads back, so n_states rounds per label are enough.
    for _ in range((len(labels) + 1) * (fst.n_states + 1)):
        new = dict(alive)
        for (at, state), value in alive.items():
            for arc in range(fst.first[state], fst.first[state + 1]):
                label = fst.ilabel[arc]
                if label == 0:
                    place = (at, int(fst.target[arc]))
                elif at < len(labels) and label == labels[at]:
                    place = (at + 1, int(fst.target[arc]))
                else:
                    continue
                new[place] = min(new.get(place, np.inf), value + float(fst.weight[arc]))
        if new == alive:
            break
        alive = new
    for (at, state), value in alive.items():
        if at == len(labels):
            best = min(best, value + float(fst.final[state]))
    return best
