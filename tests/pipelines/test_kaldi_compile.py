"""Graphs compiled from a Kaldi model's tree: least costs against HMMs strung together by hand, in float64."""

import itertools
from pathlib import Path

import kaldi_writer as writer
import numpy as np
import pytest
import soundfile
from search_graphs import min_cost, smooth_scores

from pipelines.config import Config, assign
from pipelines.config import Graph as GraphConfig
from pipelines.models import kaldi
from pipelines.models.kaldi import contexts, gmm, transitions, tree
from pipelines.models.kaldi.binary import Reader
from pipelines.models.opening import front_end, open_model
from pipelines.scoring import build_scorer
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.build import compile_graph
from pipelines.search.graph.recipe import Recipe
from profiler.spans import NullLane
from tests.each import each
from tests.pipelines.refusing import refusal

PLAIN = {1: "sil", 2: "a", 3: "b", 4: "c", 5: "d"}
QUIET = ["sil", *(f"sil_{place}" for place in "BEIS")]
PLACED = dict(enumerate([*QUIET, *(f"{name}_{place}" for name in "abcd" for place in "BEIS")], start=1))
WORDS = {"one": "a b", "two": "b", "three": "c a d", "to": "b"}
SCALE = 0.5


def files(folder: Path, sentence: str) -> Recipe:
    (folder / "words.dict").write_text("".join(f"{word} {pron}\n" for word, pron in WORDS.items()))
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
            pron = WORDS[word].split()
            ends = "S" if len(pron) == 1 else "B" + "I" * (len(pron) - 2) + "E"
            phones += [f"{p}_{end}" if placed else p for p, end in zip(pron, ends, strict=True)]
            phones += ["sil"] * after
        cost = -sum(np.log(0.3) * count + np.log(0.7) for count in silences)
        row = [number[name] for name in phones]
        # Paths by state of the phone at hand; the next phone begins where it ends.
        begin = np.full(len(scores) + 1, np.inf)
        begin[0] = 0.0
        for i, phone in enumerate(row):
            left, right = ([number["sil"], *row][i], [*row, number["sil"]][i + 1])
            topology = model.topologies[phone]
            window = (0, phone, 0) if names[phone] == "sil" else (left, phone, right)
            m = len(topology) - 1
            pdfs = [decisions.pdf(window, state.forward) for state in topology[:m]]
            steps = [(k, j, -SCALE * np.log(p)) for k in range(m) for j, p in topology[k].transitions]
            arrive = np.full((len(scores), m), np.inf)
            end = np.full(len(scores) + 1, np.inf)
            for t in range(len(scores)):
                arrive[t, 0] = begin[t]
                for k, j, step in steps:
                    if j < m and t:
                        arrive[t, j] = min(arrive[t, j], arrive[t - 1, k] + step)
                arrive[t] -= scores[t, pdfs]
                end[t + 1] = min(arrive[t, k] + step for k, j, step in steps if j == m)
            begin = end
        best = min(best, cost + begin[-1])
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


# -- scores of Kaldi models against their mixtures written out in float64 --------------------------


BLOCK = 16


def exact(path: Path, features: np.ndarray, best: bool = False) -> np.ndarray:
    """ln p of each frame by each pdf, f64 [frames, pdfs], from the file; with `best` of its best Gaussian alone."""
    reader = Reader.of(path)
    transitions.read(reader)
    x = features.astype(np.float64)[:, None]
    columns = []
    for mixture in gmm.read(reader):
        means, variances = mixture.means.astype(np.float64), mixture.variances.astype(np.float64)
        density = -0.5 * (np.log(2 * np.pi * variances) + (x - means) ** 2 / variances).sum(2)
        density += np.log(mixture.weights.astype(np.float64))
        columns.append(density.max(1) if best else np.logaddexp.reduce(density, axis=1))
    return np.array(columns).T


def scored(folder: Path, features: np.ndarray, **settings: object) -> np.ndarray:
    config = assign(Config(), {"model": "continuous", "model_directory": str(folder), **settings})
    scorer = build_scorer(config, open_model(config))
    blocks = range(0, len(features), BLOCK)
    return np.concatenate([scorer.score(features[at : at + BLOCK], at, NullLane()).copy() for at in blocks])


@pytest.fixture(scope="session")
def speech(shared_audio: Path) -> np.ndarray:
    """Twelve seconds of three people."""
    names = ("librivox-0870.flac", "goforward.flac", "cards-001.flac")
    return np.concatenate([soundfile.read(shared_audio / name, dtype="float32")[0] for name in names])[: 12 * 16_000]


@each("name", ["kaldi-mono", "mfa-mono", "mfa-triphone-lda"])
def test_a_thousand_frames_of_real_models(shared_models, speech, name):
    folder = shared_models / name
    features = front_end(kaldi.load(folder)).features(speech)[:1000]
    assert len(features) == 1000
    path = folder / ("final.alimdl" if name == "mfa-triphone-lda" else "final.mdl")
    # Thousands of nats down float32 has no thousandths.
    np.testing.assert_allclose(scored(folder, features), exact(path, features), atol=1e-3, rtol=2e-6)


def test_mixtures_that_are_filled_up_score_alike_by_all_strategies(tmp_path):
    folder = writer.write_model(tmp_path / "model", seed=3)
    assert (kaldi.load(folder).weights == 0).any()
    features = np.repeat(np.random.default_rng(4).normal(0, 4, (16, 39)), 4, axis=0).astype(np.float32)
    whole, best = exact(folder / "final.mdl", features), exact(folder / "final.mdl", features, best=True)
    near = {"atol": 1e-3, "rtol": 1e-5}
    np.testing.assert_allclose(scored(folder, features), whole, **near)
    np.testing.assert_allclose(scored(folder, features, **{"gmm.component": "max"}), best, **near)
    for senones in ("active", "ci", "active-ci"):
        np.testing.assert_allclose(scored(folder, features, **{"gmm.senones": senones}), whole, **near)
    int8 = scored(folder, features, **{"gmm.component": "int8"})
    assert np.abs(int8 - whole).max() < 0.05 * np.abs(whole).max()
    for method in ("top-n", "vq", "vq-tree", "clusters", "last-top-n"):
        chosen = {"gmm.selection.enabled": True, "gmm.selection.method": method, "gmm.selection.top_n": 4}
        some = scored(folder, features, **chosen)
        assert np.isfinite(some).all(), method
        # Less than all Gaussians, never more.
        assert (some <= whole + 0.5).all(), method
