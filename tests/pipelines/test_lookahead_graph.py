"""HCLr.fst and Gr.fst composed: against a plain product of the two, OpenFst and Kaldi's decoder."""

import shutil
import subprocess
from pathlib import Path

import kaldi_writer as writer
import lookahead_files as made
import numpy as np
import pytest
from search_graphs import assert_same_as_kaldis, smooth_scores

from pipelines.config import Graph as GraphConfig
from pipelines.models import kaldi
from pipelines.search.graph import compile as graphs
from pipelines.search.graph import openfst
from pipelines.search.graph.lookahead import compose as composition
from pipelines.search.graph.lookahead import folder as lookahead
from pipelines.search.graph.openfst import Fst, from_arcs
from pipelines.search.graph.wfst import Graph, GraphError, Senones, from_records
from profiler.errors import Cancelled
from profiler.files.paths import CACHE_VARIABLE
from profiler.process import children
from tests.each import each
from tests.graph_fst import assert_equal, assert_sound_or_refused, fst_of

WORDS = {"ab": (2, 3), "ba": (3, 2), "a": (2,), "bab": (3, 2, 3)}


def arcs_of(composed: composition.Composed) -> Fst:
    senones = Senones(np.zeros(9), np.zeros(9), np.zeros(1))
    states, arcs, final, start, n_epsilon_states = composed
    return fst_of(from_records(start, n_epsilon_states, states, arcs, final, ("",) * 99, senones, {}))


def assert_same_paths(mine: Fst, expected: Fst, within: float = 1e-4) -> None:
    found, wanted = made.language(mine), made.language(expected)
    assert found.keys() == wanted.keys()
    for pair, weight in wanted.items():
        assert found[pair] == pytest.approx(weight, abs=within), pair


@each("seed", range(6))
def test_language_models_of_every_kind_are_read(tmp_path, seed):
    model, g = made.random_contexts(seed, order=2 + seed % 3), made.random_g(seed)
    table = ["<eps>", "é", "b"]
    openfst.write(g, tmp_path / "vector")
    (tmp_path / "const").write_bytes(made.const(g, table))
    (tmp_path / "ngram").write_bytes(made.ngram(*model))
    (tmp_path / "named").write_bytes(made.ngram(*model, names=table))
    own = made.fst_of_contexts(*model)
    for name, fst, names in (("vector", g, []), ("const", g, table), ("ngram", own, []), ("named", own, table)):
        found, read = lookahead.read_g(tmp_path / name)
        assert_equal(found, fst)
        assert read == names


@each("seed", range(8))
def test_look_ahead_data_are_read(tmp_path, seed):
    hcl = made.random_hcl(seed)
    (tmp_path / "HCLr.fst").write_bytes(made.lookahead(hcl, ["<eps>", "a"], mapped=seed % 2 > 0))
    found, ahead, names = lookahead.read_hcl(tmp_path / "HCLr.fst")
    assert_equal(found, hcl)
    assert names == ["<eps>", "a"]
    expected = made.first_labels(hcl)
    for state in range(hcl.n_states):
        arcs = slice(ahead.first[state], ahead.first[state + 1])
        sets = [set(range(*pair)) for pair in zip(ahead.begin[arcs], ahead.end[arcs], strict=True)]
        labels = set().union(*sets) - {int(hcl.olabel.max()) + 1}
        assert labels == expected[state] - {made.NO_LABEL}
        assert ahead.final[state] == (made.NO_LABEL in expected[state])


@each("seed", range(20))
def test_paths_are_those_of_both(seed, monkeypatch):
    # Room of one, so that each array grows; and a share of one.
    monkeypatch.setattr(composition, "FIRST_ROOM", 1 << seed % 3)
    monkeypatch.setattr(composition, "SHARE", 1 + seed % 5)
    monkeypatch.setattr(composition, "COLUMNS", (0, 1, 64)[seed % 3])
    hcl, words = made.random_hcl(seed), 5
    g = made.random_g(seed, words=words) if seed % 2 else made.fst_of_contexts(*made.random_contexts(seed, words))
    expected = made.product(hcl, g)
    try:
        composed = composition.compose(hcl, made.look_ahead(hcl), g)
    except GraphError:
        assert not made.language(expected)
        return
    assert_same_paths(arcs_of(composed), expected)


def acceptor_of(n: int, final: list[int], rows: list[tuple[int, int, int, float, int]]) -> Fst:
    """Arcs of source, input, output, weight and target."""
    ends = np.full(n, np.inf)
    ends[final] = 0.0
    return from_arcs(n, 0, ends, *map(np.array, zip(*rows, strict=True)))


def composed(hcl: Fst, g: Fst) -> Fst:
    return arcs_of(composition.compose(hcl, made.look_ahead(hcl), g))


def test_a_word_is_taken_as_soon_as_no_other_is_ahead():
    # Two words that differ in their third sound; the model knows the first alone.
    hcl = acceptor_of(4, [3], [(0, 1, 0, 0.0, 1), (1, 2, 0, 0.0, 2), (2, 3, 1, 0.0, 3), (2, 4, 2, 0.0, 3)])
    found = composed(hcl, acceptor_of(2, [1], [(0, 1, 1, 0.5, 1)]))
    assert (found.n_states, found.n_arcs) == (4, 3)
    assert sorted(zip(found.ilabel, found.olabel, found.weight, strict=True)) == [(1, 1, 0.5), (2, 0, 0), (3, 0, 0)]


def test_weights_are_taken_where_others_are_ruled_out():
    # Words 1 and 2 begin alike, 3 does not: after the first sound the sum of their probabilities is known.
    hcl = acceptor_of(3, [2], [(0, 1, 0, 0.0, 1), (0, 2, 3, 0.0, 2), (1, 3, 1, 0.0, 2), (1, 4, 2, 0.0, 2)])
    g = acceptor_of(2, [1], [(0, word, word, -np.log(p), 1) for word, p in ((1, 0.2), (2, 0.3), (3, 0.5))])
    found = composed(hcl, g)
    weights = dict(zip(found.ilabel.tolist(), found.weight.tolist(), strict=True))
    assert weights == pytest.approx({1: -np.log(0.5), 2: -np.log(0.5), 3: -np.log(0.4), 4: -np.log(0.6)}, abs=1e-6)


def test_what_leads_nowhere_is_left_out():
    hcl = acceptor_of(3, [1], [(0, 1, 1, 0.0, 1), (0, 2, 2, 0.0, 2)])
    assert composed(hcl, acceptor_of(1, [0], [(0, 1, 1, 0.0, 0), (0, 2, 2, 0.0, 0)])).ilabel.tolist() == [1]


def test_composition_is_cancelled(monkeypatch):
    monkeypatch.setattr(composition, "SHARE", 1)
    hcl, seen = made.random_hcl(1), list[int]()
    with pytest.raises(Cancelled):
        composition.compose(hcl, made.look_ahead(hcl), made.random_g(1), seen.append, lambda: len(seen) > 1)
    assert len(seen) == 2


PLUGINS = next(Path("/usr/lib").glob("*/fst/*/olabel_lookahead-fst.so"), None)  # Of Debian's libfst22-plugins-base


@pytest.mark.skipif(
    not (PLUGINS and shutil.which("fstcompose")), reason="OpenFst's programs and plugins are not installed"
)
@pytest.mark.parametrize("seed", range(6))
def test_files_and_paths_are_openfsts(tmp_path, seed):
    assert PLUGINS is not None
    openfst.write(made.random_hcl(seed), tmp_path / "hcl.fst")
    openfst.write(made.fst_of_contexts(*made.random_contexts(seed)), tmp_path / "g.fst")
    subprocess.run(
        "fstconvert --fst_type=olabel_lookahead --save_relabel_opairs=pairs hcl.fst HCLr.fst"
        " && fstrelabel --relabel_ipairs=pairs --relabel_opairs=pairs g.fst | fstarcsort"
        " | fstconvert --fst_type=ngram > Gr.fst"
        " && fstcompose HCLr.fst Gr.fst | fstconnect | fstconvert --fst_type=vector > HCLG.fst",
        shell=True,
        check=True,
        cwd=tmp_path,
        env=children.environment({"LD_LIBRARY_PATH": str(PLUGINS.parent)}),
    )
    hcl, ahead, _ = lookahead.read_hcl(tmp_path / "HCLr.fst")
    g, _ = lookahead.read_g(tmp_path / "Gr.fst")
    # OpenFst rounds the weights that it takes ahead to 1/1024.
    assert_same_paths(arcs_of(composition.compose(hcl, ahead, g)), openfst.read(tmp_path / "HCLG.fst"), 0.02)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    directory = writer.write_model(tmp_path / "model")
    (directory / "tree").unlink()
    made.put_lookahead(directory, WORDS, 1)
    return directory


def load(folder: Path, steps: list[str] | None = None) -> Graph:
    said = steps if steps is not None else []
    return graphs.load_or_build(GraphConfig(), kaldi.load(folder), lambda stage, fraction: said.append(stage))


def test_a_folder_is_composed_once(folder, tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    first, second = list[str](), list[str]()
    graph, again = load(folder, first), load(folder, second)
    assert graph.words == tuple(WORDS)
    (note,) = graph.notes
    assert note.startswith("graph composed of HCLr.fst and Gr.fst: ")
    assert any(step.startswith("reading HCLr.fst") for step in first)
    assert second == ["reading the graph"]
    np.testing.assert_array_equal(again.arcs, graph.arcs)
    # Another content is another graph.
    (folder / "graph/Gr.fst").write_bytes(made.ngram(*made.random_contexts(2, 5), names=["<eps>", *WORDS]))
    assert len(load(folder).arcs) != len(graph.arcs)


@pytest.mark.parametrize("place", ["graph", ""])
@pytest.mark.parametrize("table", ["graph/words.txt", "words.txt", ""])
def test_words_are_found(folder, place, table):
    if not place:
        for file in list((folder / "graph").iterdir()):
            file.rename(folder / file.name)
    words = tuple(WORDS)
    if table and (place or "/" not in table):
        words = ("!SIL", "zwei", "drei", "vier")
        (folder / table).write_text("<eps> 0\n!SIL 1\nzwei 2\ndrei 3\nvier 4\n")
    assert load(folder).words == words


@each("seed", range(4))
def test_kaldis_decoder_finds_the_same_path(tmp_path, seed):
    directory = writer.write_model(tmp_path / "model")
    (directory / "tree").unlink()
    hcl, g, symbol = made.put_lookahead(directory, WORDS, seed)
    model, graph = kaldi.load(directory), load(directory)
    assert model.kaldi is not None
    # Kaldi's own way: symbols taken out after the composition.
    whole = made.product(hcl, g)
    whole.ilabel[whole.ilabel == symbol] = 0
    openfst.write(whole, tmp_path / "HCLG.fst")
    scores = smooth_scores(seed, 90, model.n_senones, 4.0)
    scores -= scores.max(1, keepdims=True)
    assert_same_as_kaldis(graph, tmp_path / "HCLG.fst", model.kaldi.pdfs, scores, 80.0)


DAMAGES = [
    (lambda f: (f / "Gr.fst").unlink(), "has no HCLG.fst, and no tree"),
    (lambda f: (f / "disambig_tid.int").write_text("1 x"), "more than whole numbers"),
    (lambda f: (f / "disambig_tid.int").unlink(), "which disambig_tid.int does not name"),
    (lambda f: (f / "words.txt").write_text("<eps> 0\na 1\nb 2\nc 3\n"), "has word 4, and the last one is 3"),
    (lambda f: openfst.write(made.random_hcl(1), f / "HCLr.fst"), "kind vector, and not olabel_lookahead"),
    (lambda f: (f / "Gr.fst").write_bytes((f / "HCLr.fst").read_bytes()), "ngram, const and vector are read"),
    (lambda f: openfst.write(made.random_hcl(1, 1, words=2), f / "Gr.fst"), "and there is no words.txt"),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES)
def test_what_does_not_fit_is_named(folder, damage, sentence):
    damage(folder / "graph")
    with pytest.raises(GraphError, match=sentence):
        load(folder)


def test_files_that_multiply_are_refused_before_they_fill_the_memory(monkeypatch):
    """HCL walks round a ring of silent states, G round another: nearly every pair of states is one of the product."""
    n, other = 301, 401
    ring = [(s, 1, 0, 0.1, (s + 1) % n) for s in range(n)] + [(0, 1, w, 0.1, 7 * w) for w in (1, 2, 3)]
    words = [(s, w, w, 0.5, (3 * s + w) % other) for s in range(other) for w in (1, 2, 3)]
    hcl, g = acceptor_of(n, [0], ring), acceptor_of(other, [*range(other)], words)
    given = hcl.n_arcs + g.n_arcs
    assert composed(hcl, g).n_arcs > composition.MOST_TIMES * given
    for name in ("FEW_ARCS", "FIRST_ROOM"):
        monkeypatch.setattr(composition, name, 1024)
    sizes: list[int] = []
    with pytest.raises(GraphError, match=f"has over 24,112 states or arcs, the files have {given:,} arcs"):
        composition.compose(hcl, made.look_ahead(hcl), g, sizes.append)
    assert max(sizes) <= composition.MOST_TIMES * given


@pytest.mark.parametrize("name", ["HCLr.fst", "Gr.fst"])
def test_damaged_files_are_sound_or_refused(folder, name):
    model = kaldi.load(folder)
    assert_sound_or_refused(folder / "graph" / name, lambda: graphs.load_or_build(GraphConfig(), model), 200)
