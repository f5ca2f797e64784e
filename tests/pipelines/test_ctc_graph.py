"""Graphs of CTC nets: H over L and G as OpenFst composes them, words in units, graphs of other tools."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import kaldifst
import numpy as np
import pytest
from ctc_nets import UNITS, WORDS, composed, h, log_probabilities, recipe
from hypothesis import given
from hypothesis import strategies as st
from search_graphs import decode, settings, spoken

from pipelines.config import Graph as GraphConfig
from pipelines.models.ctc.layouts import Units
from pipelines.models.dictionary import DictionaryError
from pipelines.search.graph import openfst
from pipelines.search.graph.ctc import compile, g2p, lexicon, topologies
from pipelines.search.graph.wfst import Graph, GraphError
from pipelines.search.viterbi import Viterbi
from profiler.errors import BadInput
from tests import graph_fst
from tests.each import each
from tests.graph_fst import fst_of
from tests.pipelines.whole_runs import quiet

OPEN = {"beam": 1000.0, "max_active": 100_000, "min_active": 0}  # Nothing is pruned
TOPOLOGIES = ("standard", "compact", "minimal")


def decoder(graph: Graph) -> Viterbi:
    return Viterbi(graph, settings(**OPEN, acoustic_scale=0.8))


def recognised(graph: Graph, scores: np.ndarray) -> list[str]:
    return spoken(decode(decoder(graph), scores, block=99))


def loud(units: Sequence[int], quiet: float = -30.0, n: int = 5) -> np.ndarray:
    """Scores under which these are said, one in a frame."""
    scores = np.full((len(units), n), quiet, np.float32)
    scores[np.arange(len(units)), units] = 0.0
    return scores


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[Graph, object]]:
    """By parts and topology our graph, and what OpenFst composes."""
    folder = tmp_path_factory.mktemp("toy")
    found = {}
    for parts, topology in product(("H", "HL", "HLG"), TOPOLOGIES):
        wanted = recipe(folder, parts=parts, topology=topology)
        graph = compile.compile_graph(wanted, quiet)
        if parts == "H":
            const = kaldifst.StdConstFst(openfst.to_kaldifst(h(UNITS, topology)))
        else:
            const = composed(UNITS, topology, compile.words_in_units(wanted, UNITS, quiet)[1])
        found[parts, topology] = graph, const
    return found


@given(seed=st.integers(0, 100_000), frames=st.integers(1, 30), blank=st.sampled_from([0.0, 3.0]))
def test_graphs_say_what_those_composed_by_openfst_say_to_kaldis_decoder(made, seed, frames, blank):
    scores = log_probabilities(seed, frames, blank=blank)
    for (parts, topology), (graph, const) in made.items():
        mine = graph_fst.ours(decoder(graph), scores)
        theirs = graph_fst.kaldis(const, scores * np.float32(0.8), UNITS.blank, **OPEN)
        assert theirs is not None
        if parts == "H":  # where the unit between words is shown too
            theirs = theirs._replace(words=[word for word in theirs.words if word != UNITS.boundary + 1])
        assert mine.complete == theirs.complete, (parts, topology)
        assert mine.cost == pytest.approx(theirs.cost, abs=1e-3), (parts, topology)
        # Without G words of the same units cost the same, and in the compact topology a unit and two of it.
        if parts == "HLG" or (parts == "H" and topology != "compact"):
            assert mine.words == theirs.words, (parts, topology)
        if topology == "standard":
            assert mine.segments == theirs.segments, parts


def test_the_standard_topology_keeps_equal_units_apart_and_others_do_not(made):
    # Frames a a: one "a" that lasts; with a blank between them the word "aa", or "a a".
    says = {topology: recognised(made["H", topology][0], loud([1, 1, 1])) for topology in TOPOLOGIES}
    assert says == {"standard": ["a"], "compact": ["a"], "minimal": ["a", "a", "a"]}
    assert recognised(made["H", "standard"][0], loud([1, UNITS.blank, 1])) == ["a", "a"]


def test_a_graph_with_too_many_arcs_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(topologies, "MOST_ARCS", 20)
    with pytest.raises(GraphError, match=r"where 20 can be searched; .*graph\.topology=compact"):
        compile.compile_graph(recipe(tmp_path), quiet)


def test_words_are_said_when_their_units_are(made):
    # c a b, <wb>, a blank a; the rest blank.
    scores = loud([0, 3, 0, 1, 2, 0, 4, 1, 0, 1, 0, 0], np.log(1e-4))
    assert decode(decoder(made["HL", "standard"][0]), scores, block=99) == [("cab", 1, 4), ("aa", 7, 3)]


def test_the_cost_of_alternatives_is_that_of_the_pronunciations_after_the_first(tmp_path):
    costs = []
    for cost in (0.0, 2.5):
        graph = compile.compile_graph(recipe(tmp_path, words={"cab": WORDS["cab"]}, alternative_cost=cost), quiet)
        costs.append(graph_fst.ours(decoder(graph), loud([3, 2, 0, 0])).cost)  # c b
    assert costs[1] - costs[0] == pytest.approx(2.5)


# Words in units.


def pronounced(words: list[str], folder: Path, units: Units, **changes) -> dict[str, tuple]:
    found = lexicon.Lexicon(recipe(folder, units, **changes), units, quiet)
    entries = {word: entry for word in words if (entry := found.find(word)) is not None}
    return found.pronunciations(entries)[0].pronunciations


def test_words_are_spelled_in_pieces_as_byte_pair_encoding_does(tmp_path):
    # In the order of the merges: th, ▁th, ▁the, re.
    units = Units(("<blk>", "▁", "t", "h", "e", "r", "th", "▁th", "▁the", "re"), 0)
    found = pronounced(["there", "three", "x", "THE"], tmp_path, units, dictionary="")
    assert found == {"there": (("▁the", "re"),), "three": (("▁th", "re", "e"),), "THE": (("▁the",),)}
    letters = Units(("<blk>", "a", "b", "|"), 0, 3)
    assert pronounced(["ab", "c"], tmp_path, letters, dictionary="") == {"ab": (("a", "b"),)}


def test_a_phone_net_says_words_by_the_table_then_by_the_dictionary_in_cmus_phones(tmp_path):
    phones = sorted({p for choice in lexicon.IPA.values() for p in choice})
    units = Units(("<pad>", *phones, "<wb>", "<blank>"), 41, 40)
    assert lexicon.phonetic(units)
    assert not lexicon.phonetic(UNITS)
    (tmp_path / "cmu.dict").write_text("abut AH0 B AH1 T\nto T UW\nto(2) T AH\n")
    (tmp_path / "g2p.dict").write_text("to t ʊ\n")
    files = {"dictionary": str(tmp_path / "cmu.dict"), "table": str(tmp_path / "g2p.dict")}
    found = pronounced(["abut", "to", "unheard"], tmp_path, units, **files)
    assert found.keys() == {"abut", "to"}
    assert found["to"] == (("t", "ʊ"), ("t", "u"), ("t", "ʌ"), ("t", "ə"))
    assert len(found["abut"]) == 4


def test_a_dictionary_in_other_phones_is_refused(tmp_path):
    with pytest.raises(DictionaryError, match=r"lexicon.txt pronounces .* with phones that the acoustic model lacks"):
        compile.compile_graph(recipe(tmp_path, Units(("<blank>", "x"), 0)), quiet)


@pytest.mark.skipif(not g2p.version(), reason="the wheel hama, which has the G2P net, is not installed")
def test_other_words_are_pronounced_by_the_g2p_net_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    symbols = {"t", "oʊ", "f", "u"}
    first = g2p.pronounce(["tofu", "two"], symbols, quiet)
    assert first["tofu"] == (("t", "oʊ", "f", "u"),)
    monkeypatch.setattr(g2p, "spoken", lambda words: iter([(word, []) for word in words]))
    assert g2p.pronounce(["tofu", "nothing"], symbols, quiet) == {"tofu": first["tofu"]}


def test_the_table_that_ships_says_the_most_frequent_words():
    table = lexicon.dictionaries.read(g2p.table())
    assert len(table) >= 5000
    assert {"the", "country", "two"} <= set(table.words())


# Graphs of folders.


def put(folder: Path, name: str, graph: Graph) -> Path:
    folder.mkdir(exist_ok=True)
    openfst.write(fst_of(graph), folder / name)
    (folder / "words.txt").write_text("".join(f"{w} {n}\n" for n, w in enumerate(("<eps>", *graph.words, "#0"))))
    return folder


@each("parts, name", [("HLG", "HLG.fst"), ("HLG", "TLG.fst"), ("HL", "HL.fst"), ("H", "H.fst")])
def test_graphs_of_other_tools_are_opened_and_say_the_same(made, tmp_path, parts, name):
    graph = made[parts, "standard"][0]
    read = compile.load_or_build(GraphConfig(parts=parts), UNITS, put(tmp_path, name, graph))
    assert read.blank == UNITS.blank
    for seed in range(5):
        scores = log_probabilities(seed, 20)
        assert recognised(read, scores) == recognised(graph, scores)


def test_of_parts_that_are_not_in_the_folder_a_graph_is_compiled_with_its_lexicon(tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    recipe(tmp_path)
    config = GraphConfig(language_model=str(tmp_path / "toy.arpa"))
    steps = []
    graph = compile.load_or_build(config, UNITS, tmp_path, lambda what, share: steps.append(what))
    assert set(graph.words) == {"<s>", "</s>", *WORDS}
    assert any("building graph: determinising" in step for step in steps)
    assert compile.load_or_build(config, UNITS, tmp_path).n_arcs == graph.n_arcs


def test_a_unit_that_is_a_space_may_stand_between_words(tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "list.txt").write_text("ab\nba\n")
    letters = Units(("<blank>", " ", "a", "b"), 0)
    graph = compile.load_or_build(GraphConfig(grammar=str(tmp_path / "list.txt")), letters, tmp_path / "none")
    for between in (1, 0):  # the space, and a blank alone
        scores = loud([2, 3, between, 3, 2], -9.0, 4)
        assert recognised(graph, scores) == ["ab", "ba"]
        assert graph_fst.ours(decoder(graph), scores).cost < 0.8 * 9.0  # no frame is read as another unit


@each(
    "damage, message",
    [
        (lambda folder: (folder / "HLG.fst").write_bytes(b"none"), "is not an OpenFst file"),
        (lambda folder: (folder / "words.txt").unlink(), "words.txt"),
        (lambda folder: (folder / "words.txt").write_text("<eps> 0\na 1\n"), "words.txt ends at 1"),
    ],
)
def test_damaged_folders_are_refused_in_one_sentence(made, tmp_path, damage, message):
    folder = put(tmp_path, "HLG.fst", made["HLG", "standard"][0])
    damage(folder)
    with pytest.raises(BadInput, match=message):
        compile.load_or_build(GraphConfig(), UNITS, folder)


def test_a_graph_of_another_net_is_refused(made, tmp_path):
    folder = put(tmp_path, "HLG.fst", made["HLG", "standard"][0])
    with pytest.raises(GraphError, match="has label 5, and the net's last unit has 3 there"):
        compile.load_or_build(GraphConfig(), Units(("<blank>", "a", "b"), 0), folder)
    with pytest.raises(GraphError, match="the blank among them"):
        compile.load_or_build(GraphConfig(), Units(("a", "b"), 2))
