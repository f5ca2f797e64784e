"""Kaldi's files: random models written by a small writer and read back, real and damaged ones; and their scores."""

from pathlib import Path

import kaldi_writer as writer
import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config import Config, assign
from pipelines.models import kaldi
from pipelines.models.kaldi import contexts, features, gmm, transitions, tree
from pipelines.models.kaldi import model as kaldi_model
from pipelines.models.kaldi.binary import Reader
from pipelines.models.opening import front_end, open_model
from pipelines.scoring import build_scorer
from pipelines.scoring.senones import parents_of
from profiler.spans import NullLane
from tests.each import each
from tests.pipelines.refusing import refusal, refused_where_cut


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return writer.write_model(tmp_path / "model")


def reader(data: bytes) -> Reader:
    return Reader(b"\0B" + data, Path("some.file"))


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_random_transition_model_is_read_back(seed, own_loops):
    rng = np.random.default_rng(seed)
    topologies = []
    for _ in range(rng.integers(1, 4)):
        emitting = int(rng.integers(1, 6))
        states = []
        for state in range(emitting):
            targets = sorted({state, *rng.integers(0, emitting + 1, rng.integers(1, 4)).tolist()})
            shares = rng.dirichlet(np.ones(len(targets)))
            loop = int(rng.integers(0, 3)) if own_loops else state
            states.append((state, loop, [(t, float(np.float32(p))) for t, p in zip(targets, shares, strict=True)]))
        topologies.append([*states, (-1, -1, [])])
    numbers = sorted(rng.choice(np.arange(1, 40), rng.integers(1, 8), replace=False).tolist())
    phones = {phone: topologies[rng.integers(len(topologies))] for phone in numbers}
    tuples = []
    for phone, states in phones.items():
        for state in range(len(states) - 1):
            pdf = int(rng.integers(0, 50))
            tuples.append((phone, state, pdf, int(rng.integers(0, 50)) if own_loops else pdf))
    model = transitions.read(reader(writer.transition_model(phones, tuples, own_loops)))
    assert model.phones == numbers
    tid = 0
    for phone, state, forward, loop in tuples:
        for target, probability in phones[phone][state][2]:
            tid += 1
            assert (model.phone[tid], model.state[tid]) == (phone, state)
            assert model.is_loop[tid] == (target == state)
            assert model.pdf[tid] == (loop if target == state else forward)
            np.testing.assert_allclose(np.exp(model.log_prob[tid]), probability, rtol=1e-5)
    assert tid == model.n_transitions
    assert model.n_pdfs == max(max(forward, loop) for _, _, forward, loop in tuples) + 1


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_random_mixtures_are_read_back(seed, constants, old):
    rng = np.random.default_rng(seed)
    pdfs = writer.random_pdfs(rng, int(rng.integers(1, 6)), int(rng.integers(1, 50)))
    found = gmm.read(reader(writer.mixtures(pdfs, constants, old)))
    for mixture, (weights, means, variances) in zip(found, pdfs, strict=True):
        np.testing.assert_allclose(mixture.weights, weights, rtol=1e-6)
        np.testing.assert_allclose(mixture.means, means, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(mixture.variances, variances, rtol=1e-5)


def test_constants_of_other_means_are_refused():
    pdfs = writer.random_pdfs(np.random.default_rng(2), 2, 5)
    data = bytearray(writer.mixtures(pdfs))
    at = data.index(b"<MEANS_INVVARS>") + len(b"<MEANS_INVVARS> FM \4....\4....")
    data[at : at + 4] = np.float32(9).tobytes()
    refusal("constants of pdf 0", gmm.read, reader(bytes(data)))


def random_tree(rng: np.random.Generator, width: int, depth: int) -> tuple[bytes, object]:
    """An encoded tree and the function (window, pdf class) -> pdf that it stands for."""
    kind = rng.integers(3) if depth else 0
    key = int(rng.integers(-1, width))

    def value(window, pdf_class):
        return pdf_class if key < 0 else window[key]

    if kind == 0:
        pdf = int(rng.integers(0, 1000))
        return writer.leaf(pdf), lambda window, pdf_class: pdf
    if kind == 1:
        values = sorted(rng.choice(10, rng.integers(1, 6), replace=False).tolist())
        (yes, if_yes), (no, if_no) = (random_tree(rng, width, depth - 1) for _ in range(2))
        return writer.split(key, values, yes, no), (
            lambda window, c: (if_yes if value(window, c) in values else if_no)(window, c)
        )
    below = [random_tree(rng, width, depth - 1) if rng.random() < 0.8 else (None, None) for _ in range(6)]

    def entry(window, pdf_class):
        at = value(window, pdf_class)
        answer = below[at][1] if at < len(below) else None
        return tree.NONE if answer is None else answer(window, pdf_class)

    return writer.table(key, [encoded for encoded, _ in below]), entry


@given(st.integers(0, 2**32 - 1))
def test_a_random_tree_gives_the_pdfs_that_it_was_written_for(seed):
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, 4))
    encoded, answer = random_tree(rng, width, int(rng.integers(0, 6)))
    read = tree.read(Reader(writer.tree(encoded, width, width // 2), Path("tree")))
    assert (read.width, read.centre) == (width, width // 2)
    for window in rng.integers(0, 10, (40, width)).tolist():
        pdf_class = int(rng.integers(0, 5))
        assert read.pdf(window, pdf_class) == answer(window, pdf_class)


def test_numbers_and_tokens_that_are_none():
    refusal("text form", Reader, b"<TransitionModel> <Topology>", Path("final.mdl"))
    refusal("compressed", reader(writer.token("CM2")).matrix, "a matrix")
    refusal("no number or beyond", reader(writer.vector([1.0, float("nan")])).vector, "a vector")
    huge = writer.token("FM") + writer.i32(1 << 26) + writer.i32(1 << 26)
    refusal("cut short", reader(huge).matrix, "a matrix")
    refusal("number of 8 bytes, expected 4", reader(b"\x08" + bytes(8)).integer, "a count")
    branch = writer.token("SE") + writer.i32(0) + writer.integers([1]) + writer.token("{")
    refusal("below each other", tree.read, Reader(writer.tree(branch * 5000), Path("tree")))


def test_a_folder_becomes_a_model(folder):
    model = kaldi.load(folder)
    assert (model.kind, model.n_senones, model.means.shape[1:]) == ("continuous", 8, (1, 4, 39))
    assert model.mdef.phones == ["sil", "a", "b"]
    assert model.mdef.senone_phone.tolist() == [0, 0, 1, 1, 1, 2, 2, 2]
    assert model.mdef.senone_state.tolist() == [0, 1, 0, 1, 2, 0, 1, 2]
    np.testing.assert_allclose(model.weights[0].sum(0), 1, atol=1e-5)
    first = model.notes[0]
    assert "3 phones, 8 pdfs" in first
    assert "16,000 Hz, 13 MFCCs with 2 orders of differences; no HCLG.fst, a graph is compiled" in first
    assert any("mean is that of the utterance" in note for note in model.notes)
    (folder / "cmvn_opts").write_text("--norm-vars=true\n")
    assert any("mean and variance are those" in note for note in kaldi.load(folder).notes)
    assert kaldi.load(folder).checksum != model.checksum


def test_parents_of_triphones_are_the_pdfs_without_neighbours(folder):
    # The first state of phone 2 has pdf 2 without a left neighbour and pdf 5, of phone 3 as well, otherwise.
    tuples = [*writer.TUPLES, (2, 0, 8, 8)]
    writer.write_mixtures(folder / "final.mdl", tuples, seed=3)
    states = [[writer.leaf(3 * p - 4 + s) for s in range(3)] for p in (2, 3)]
    states[0][0] = writer.split(0, [0], writer.leaf(2), writer.leaf(8))
    classes = [writer.table(-1, [writer.leaf(0), writer.leaf(1)]), *(writer.table(-1, each) for each in states)]
    (folder / "tree").write_bytes(writer.tree(writer.table(1, [None, *classes]), 3, 1))
    model = kaldi.load(folder)
    parents = parents_of(model)
    assert parents.ci.tolist() == list(range(8))
    assert parents.ci[parents.of].tolist() == [*range(8), 2]
    (folder / "tree").unlink()
    assert parents_of(kaldi.load(folder)).ci.tolist() == list(range(9))


def test_a_speaker_independent_model_is_taken_where_fmllr_is_left_out(folder):
    assert not any("fMLLR" in note for note in kaldi.load(folder).notes)
    pdfs = writer.write_mixtures(folder / "final.alimdl", seed=9)
    model = kaldi.load(folder)
    np.testing.assert_allclose(model.means[0, 0, 0], pdfs[0][1][0], rtol=1e-5, atol=1e-6)
    assert sum("fMLLR" in note for note in model.notes) == 1


def test_a_transform_that_does_not_fit_is_refused(folder):
    (folder / "final.mat").write_bytes(writer.transform(np.ones((39, 90), np.float32)))
    refusal("its transform takes 90 values, and 13 MFCCs make 91", kaldi.load, folder)
    (folder / "final.mat").write_bytes(writer.transform(np.ones((40, 91), np.float32)))
    refusal("makes 40 features, the model takes 39", kaldi.load, folder)
    (folder / "splice_opts").write_text("--left-context=2 --right-context=4")
    (folder / "final.mat").write_bytes(writer.transform(np.ones((39, 91), np.float32)))
    assert "spliced −2 … +4, LDA or MLLT" in kaldi.load(folder).notes[0]


@each(
    "name, text, sentence",
    [
        ("mfcc.conf", "--subtract-mean=true", "subtract-mean"),
        ("mfcc.conf", "--num-mel-bins=5", "must not exceed --num-mel-bins"),
        ("mfcc.conf", "--frame-shift=12.5", "only 10 ms"),
        ("mfcc.conf", "--sample-frequency=1e400", "cannot be used as a value"),
        ("mfcc.conf", "num-ceps 13", "expected an option such as"),
        ("mfcc.conf", "--low-freq=9000", "must rise within"),
        ("mfcc.conf", "--use-pitch", "features that are not computed"),
        ("mfcc.conf", "--delta-order=1", "--delta-order is an option of delta_opts, not of mfcc.conf"),
        ("mfcc.conf", "--left-context=1", "--left-context is an option of splice_opts, not of mfcc.conf"),
        ("mfcc.conf", "--norm-vars=true", "--norm-vars is an option of cmvn_opts, not of mfcc.conf"),
        *(
            (name, "--print-args=false --num-ceps=13\n", f"--num-ceps is an option of mfcc.conf, not of {name}")
            for name in ("delta_opts", "splice_opts", "cmvn_opts")
        ),
    ],
)
def test_options_of_features_that_are_refused(tmp_path, name, text, sentence):
    (writer.write_model(tmp_path) / name).write_text(text)
    refusal(sentence, kaldi.load, tmp_path)


OPTIONS = ("mfcc.conf", "delta_opts", "splice_opts", "cmvn_opts")


@each("name", ["final.mdl", "final.alimdl", "final.mat", *OPTIONS, "tree", "phones.txt", "conf/mfcc.conf", "meta.json"])
@each("target", ["nowhere", "itself"])
def test_a_link_that_leads_nowhere_is_missing_and_not_absent(tmp_path, name, target):
    writer.write_model(tmp_path)
    if name.startswith("conf"):
        (tmp_path / "mfcc.conf").unlink()
    place = tmp_path / name
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(place.name if target == "itself" else "nowhere")
    assert name.partition("/")[0] in refusal("missing", kaldi.load, tmp_path)


def test_a_mixture_far_larger_than_the_others_is_refused(tmp_path, monkeypatch):
    def mixture(n: int) -> gmm.Mixture:
        return gmm.Mixture(*(np.ones(shape, np.float32) for shape in ((n,), (n, 2), (n, 2))))

    many = [*(mixture(1) for _ in range(999)), mixture(4000)]
    sentence = r"a mixture has 4,000 Gaussians; .* 9,998 values become 8,000,000"
    refusal(sentence, kaldi_model._filled_up, tmp_path, many)
    monkeypatch.setattr(kaldi_model, "FEW_VALUES", 0)
    few = [mixture(1)] * 15
    assert kaldi_model._filled_up(tmp_path, [*few, mixture(200)])[0].shape == (16, 1, 200, 2)
    refusal("At most 16 times as many", kaldi_model._filled_up, tmp_path, [*few, mixture(1), mixture(2000)])


def test_the_aligners_meta_files(tmp_path):
    settings = "features:\n  deltas: true\n  splice_left_context: null\n  type: mfcc\n"
    yaml, file = tmp_path / "meta.yaml", tmp_path / "meta.json"
    yaml.write_text(f"architecture: gmm-hmm\n{settings}phones:\n- aa\n- 'b'\nversion: 2.0\n")
    assert features.read_meta(yaml) == {"deltas": "true", "type": "mfcc"}
    file.write_text('{"features": {"type": "mfcc", "use_energy": false, "num_mel_bins": 30, "x": null}}')
    assert features.read_meta(file) == {"type": "mfcc", "use_energy": "false", "num_mel_bins": "30"}
    for text, sentence in (("[" * 200, "JSON"), ("[]", "no table of features")):
        file.write_text(text)
        refusal(sentence, features.read_meta, file)


def test_symbol_tables(tmp_path):
    table = tmp_path / "words.txt"
    table.write_text("<eps> 0\nja\t3\ntʃ 2\n")
    assert contexts.read_symbols(table) == ["<eps>", "", "tʃ", "ja"]
    for text in ("a", "a b c", "a -1", "a 99999999", "a x", ""):
        table.write_text(text)
        refusal("words.txt", contexts.read_symbols, table)


@each("name", ["final.mdl", "tree"])
def test_a_file_cut_anywhere_is_refused(tmp_path, name):
    refused_where_cut(kaldi.load, writer.write_model(tmp_path), name)


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
    blocks = range(0, len(features), 16)
    return np.concatenate([scorer.score(features[at : at + 16], at, NullLane()).copy() for at in blocks])


@each("name, phones, pdfs", [("kaldi-mono", 39, 121), ("mfa-mono", 171, 132), ("mfa-triphone-lda", 73, 80)])
def test_a_thousand_frames_of_real_models(shared_models, shared_audio, name, phones, pdfs):
    folder = shared_models / name
    model = kaldi.load(folder)
    assert (model.mdef.n_ci, model.n_senones) == (phones, pdfs)
    np.testing.assert_allclose(model.weights.sum(1), 1, atol=1e-4)
    people = ("librivox-0870.flac", "goforward.flac", "cards-001.flac")
    speech = np.concatenate([soundfile.read(shared_audio / person, dtype="float32")[0] for person in people])
    features = front_end(model).features(speech[: 12 * 16_000])[:1000]
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
