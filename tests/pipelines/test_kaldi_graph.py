"""HCLG of Kaldi models: OpenFst files of both kinds, transition-ids to pdfs, and Kaldi's decoder on the same graph."""

import itertools
import struct
from pathlib import Path

import kaldi_writer as writer
import kaldifst
import numpy as np
import pytest
import soundfile
from search_graphs import assert_same_as_kaldis, min_cost, smooth_scores

from pipelines.config import Graph as GraphConfig
from pipelines.models import kaldi
from pipelines.models.kaldi import contexts, transitions, tree
from pipelines.models.kaldi.binary import Reader
from pipelines.models.opening import front_end
from pipelines.models.sphinx import AcousticModel
from pipelines.search.graph import compile as graphs
from pipelines.search.graph import openfst
from pipelines.search.graph.build import compile_graph
from pipelines.search.graph.openfst import Fst, from_arcs
from pipelines.search.graph.recipe import Recipe
from pipelines.search.graph.wfst import Graph
from tests.each import each
from tests.graph_fst import assert_equal, assert_sound_or_refused, fst_of
from tests.pipelines.refusing import refusal

WORDS = {"ab": (2, 3), "ba": (3, 2), "a": (2,), "bab": (3, 2, 3)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return writer.put_graph(writer.write_model(tmp_path / "model"), WORDS, silence=1)


def load(folder: Path) -> tuple[AcousticModel, Graph]:
    model = kaldi.load(folder)
    return model, graphs.load_or_build(GraphConfig(), model)


def random_fst(seed: int) -> Fst:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 20)), int(rng.integers(0, 60))
    final = np.where(rng.random(n) < 0.3, rng.exponential(1.0, n), np.inf).astype(np.float32)
    ilabel, olabel = rng.integers(0, 9, m), rng.integers(0, 5, m)
    return from_arcs(n, 0, final, rng.integers(0, n, m), ilabel, olabel, rng.exponential(1, m), rng.integers(0, n, m))


def aligned(content: bytes, fst: Fst) -> bytes:
    """A const file with its states and arcs at multiples of 16 bytes, as version 1 has them."""
    head = 4 + (4 + len("const")) + (4 + len("standard"))
    body = head + 4 + 36
    states, arcs = content[body : body + 20 * fst.n_states], content[body + 20 * fst.n_states :]
    out = content[:head] + struct.pack("<i", 1) + content[head + 4 : body]
    out += bytes(-len(out) % 16) + states
    return out + bytes(-len(out) % 16) + arcs


@each("seed", range(12))
def test_const_files_of_openfst_are_read(tmp_path, seed):
    fst, path = random_fst(seed), tmp_path / "const.fst"
    kaldifst.StdConstFst(openfst.to_kaldifst(fst)).write(str(path))
    assert_equal(openfst.read(path), fst)
    path.write_bytes(aligned(path.read_bytes(), fst))
    assert_equal(openfst.read(path), fst)


def test_the_graph_has_pdfs_words_and_self_loops(folder):
    model, graph = load(folder)
    assert graph.words == tuple(WORDS)
    assert graph.n_senones == model.n_senones == 8
    raw = openfst.read(folder / "graph/HCLG.fst")
    assert model.kaldi is not None
    mine = fst_of(graph)
    # The same arcs, whatever the states are called now.
    wanted = sorted(
        zip(np.where(raw.ilabel > 0, model.kaldi.pdfs[raw.ilabel] + 1, 0), raw.olabel, raw.weight, strict=True)
    )
    assert sorted(zip(mine.ilabel, mine.olabel, mine.weight, strict=True)) == wanted
    loops = (raw.source == raw.target) & (raw.ilabel > 0)
    assert (graph.states["loop_label"] > 0).sum() == len(np.unique(raw.source[loops]))


def test_marks_and_silence_are_no_words(folder):
    table = (folder / "graph/words.txt").read_text().replace("ab 1", "!SIL 1").replace("ba 2", "[noise] 2")
    (folder / "graph/words.txt").write_text(table)
    _, graph = load(folder)
    assert set(graph.arcs["olabel"].tolist()) == {0, 3, 4}
    (folder / "graph/words.txt").write_text(table.replace("[noise]", "[9]"))
    _, graph = load(folder)
    assert set(graph.arcs["olabel"].tolist()) == {0, 2, 3, 4}, "a number in brackets is a word"


def without_graph_and_tree(folder: Path) -> None:
    (folder / "graph/HCLG.fst").unlink()
    (folder / "tree").unlink()


def of_another_model(folder: Path) -> None:
    raw = openfst.read(folder / "graph/HCLG.fst")
    raw.ilabel[raw.ilabel > 0] += 99
    openfst.write(raw, folder / "graph/HCLG.fst")


@each(
    "damage, sentence",
    [
        (without_graph_and_tree, "has no HCLG.fst, and no tree to compile one from; utils/mkgraph.sh"),
        (of_another_model, "was made for another one"),
        (lambda f: (f / "graph/words.txt").unlink(), "words.txt is missing"),
        (lambda f: (f / "graph/words.txt").write_text("<eps> 0\nab 1\n"), "has word 4, and words.txt ends at 1"),
        (lambda f: (f / "graph/HCLG.fst").write_bytes(b"something else" * 9), "is not an OpenFst file"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, damage, sentence):
    damage(writer.put_graph(writer.write_model(tmp_path), WORDS, silence=1))
    refusal(sentence, load, tmp_path)


@pytest.mark.parametrize("kind", ["vector", "const"])
def test_damaged_graphs_are_sound_or_refused(folder, kind):
    path = folder / "graph/HCLG.fst"
    if kind == "const":
        kaldifst.StdConstFst(kaldifst.StdVectorFst.read(str(path))).write(str(path))
    assert_sound_or_refused(path, lambda: load(folder), 90)


@pytest.mark.parametrize("seed", range(6))
def test_kaldis_decoder_finds_the_same_path(folder, seed):
    model, graph = load(folder)
    assert model.kaldi is not None
    scores = smooth_scores(seed, 120, model.n_senones, 4.0)
    scores -= scores.max(1, keepdims=True)
    assert_same_as_kaldis(graph, folder / "graph/HCLG.fst", model.kaldi.pdfs, scores, 60.0)


def test_kaldis_decoder_finds_the_same_path_on_real_speech(shared_models, shared_audio, tmp_path):
    (tmp_path / "final.mdl").write_bytes((shared_models / "kaldi-mono/final.mdl").read_bytes())
    # Its phones have no names here: words of any of them.
    rng = np.random.default_rng(1)
    words = {f"w{i}": tuple(rng.integers(3, 40, rng.integers(2, 6)).tolist()) for i in range(40)}
    writer.put_graph(tmp_path, words, silence=1)
    model, graph = load(tmp_path)
    assert model.kaldi is not None
    samples, _ = soundfile.read(shared_audio / "goforward.flac", dtype="float32")
    features = front_end(model).features(samples).astype(np.float64)
    means, variances = model.means[:, 0, 0].astype(np.float64), model.variances[:, 0, 0].astype(np.float64)
    constant = np.log(2 * np.pi * variances).sum(1) + (means**2 / variances).sum(1)
    scores = -0.5 * (constant + features**2 @ (1 / variances).T) + features @ (means / variances).T
    scores = (0.1 * (scores - scores.max(1, keepdims=True))).astype(np.float32)
    words = assert_same_as_kaldis(graph, tmp_path / "graph/HCLG.fst", model.kaldi.pdfs, scores, 200.0)
    assert len(words) > 1


PLAIN = {1: "sil", 2: "a", 3: "b", 4: "c", 5: "d"}
QUIET = ["sil", *(f"sil_{place}" for place in "BEIS")]
PLACED = dict(enumerate([*QUIET, *(f"{name}_{place}" for name in "abcd" for place in "BEIS")], start=1))
PRONOUNCED = {"one": "a b", "two": "b", "three": "c a d", "to": "b"}
SCALE = 0.5


def files(folder: Path, sentence: str) -> Recipe:
    (folder / "words.dict").write_text("".join(f"{word} {pron}\n" for word, pron in PRONOUNCED.items()))
    (folder / "words.gram").write_text(f"#JSGF V1.0;\ngrammar words;\npublic <words> = {sentence};\n")
    paths = str(folder / "words.dict"), str(folder / "words.gram")
    return Recipe(str(folder), paths[0], grammar=paths[1], transition_scale=SCALE, silence_probability=0.3)


def least(folder: Path, names: dict[int, str], words: list[str], scores: np.ndarray) -> float:
    """Least cost of saying `words`, up to three silences at each boundary, phone by phone."""
    model = transitions.read(Reader.of(folder / "final.mdl"))
    decisions = tree.read(Reader.of(folder / "tree"))
    number = {name: phone for phone, name in names.items()}
    placed = "a_B" in number
    best = np.inf
    for silences in itertools.product(range(4), repeat=len(words) + 1):
        phones: list[str] = ["sil"] * silences[0]
        for word, after in zip(words, silences[1:], strict=True):
            pron = PRONOUNCED[word].split()
            ends = "S" if len(pron) == 1 else "B" + "I" * (len(pron) - 2) + "E"
            phones += [f"{p}_{end}" if placed else p for p, end in zip(pron, ends, strict=True)]
            phones += ["sil"] * after
        row = [number["sil"], *(number[name] for name in phones), number["sil"]]
        arcs, pdfs = list[tuple[int, int, float]](), list[int]()
        for left, phone, right in zip(row, row[1:], row[2:], strict=False):
            window, begin = (0, phone, 0) if names[phone] == "sil" else (left, phone, right), len(pdfs)
            # The last state of a phone is the first one of the next.
            for state in model.topologies[phone][:-1]:
                arcs += [(len(pdfs), begin + target, -SCALE * np.log(p)) for target, p in state.transitions]
                pdfs.append(decisions.pdf(window, state.forward))
        costs = np.full(len(pdfs) + 1, np.inf)
        costs[0] = -sum(np.log(0.3) * count + np.log(0.7) for count in silences)
        for frame in scores:
            emitted = costs[:-1] - frame[pdfs]
            costs = np.full(len(pdfs) + 1, np.inf)
            for source, target, cost in arcs:
                costs[target] = min(costs[target], emitted[source] + cost)
        best = min(best, costs[-1])
    return float(best)


@each("names, seed", [(PLAIN, 0), (PLACED, 1)])
def test_least_costs_are_those_of_hmms_strung_together(tmp_path, names, seed):
    folder = writer.write_triphones(tmp_path / "model", names, seed)
    graph = compile_graph(files(folder, "one two three"), lambda *_: None)
    assert graph.n_senones == kaldi.load(folder).n_senones
    for turn in range(2):
        scores = smooth_scores(10 * seed + turn, 16, graph.n_senones, 5.0).astype(np.float64)
        words = ["one", "two", "three"]
        assert min_cost(graph, scores, words, 1.0) == pytest.approx(least(folder, names, words, scores), abs=2e-3)


def test_homophones_and_choices_keep_their_words(tmp_path):
    folder = writer.write_triphones(tmp_path / "model", PLAIN, 4)
    graph = compile_graph(files(folder, "(two | to) one"), lambda *_: None)
    scores = smooth_scores(1, 14, graph.n_senones, 5.0).astype(np.float64)
    some, other = (min_cost(graph, scores, [word, "one"], 1.0) for word in ("two", "to"))
    assert some == pytest.approx(other, abs=1e-3)
    assert some == pytest.approx(least(folder, PLAIN, ["two", "one"], scores) + np.log(2), abs=2e-3)
    assert min_cost(graph, scores, ["one", "two"], 1.0) == np.inf


def test_a_folder_without_a_graph_gets_one_from_its_tree(tmp_path):
    folder = writer.write_triphones(tmp_path / "model", PLAIN)
    recipe = files(folder, "one | three")
    config = GraphConfig(grammar=recipe.grammar, dictionary=recipe.dictionary)
    model = kaldi.load(folder)
    assert "a graph is compiled from the tree" in model.notes[0]
    graph = graphs.load_or_build(config, model)
    assert set(graph.words) == {"one", "three"}
    # Another tree, another graph.
    writer.write_triphones(folder, PLAIN, 2)
    again = graphs.load_or_build(config, kaldi.load(folder))
    assert again.arcs.tobytes() != graph.arcs.tobytes()
    (folder / "phones.txt").unlink()
    refusal(r"has no HCLG\.fst, and no phones\.txt", lambda: graphs.load_or_build(config, kaldi.load(folder)))


def test_models_that_no_graph_is_compiled_for(tmp_path):
    folder = writer.write_triphones(tmp_path / "model", PLAIN)
    (folder / "phones.txt").write_text((folder / "phones.txt").read_text().replace("sil", "quiet"))
    refusal("needs a phone called sil", contexts.read, folder)
    writer.write_triphones(folder, PLAIN)
    (folder / "tree").write_bytes(writer.tree(writer.leaf(0), 5, 2))
    refusal("looks at 5 phones", contexts.read, folder)
    (folder / "tree").write_bytes(writer.tree(writer.leaf(0), 3, 1))
    found = contexts.read(folder)
    refusal("no transitions of state", found.hmms, found.definition.sseq)
