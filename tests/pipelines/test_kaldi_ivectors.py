"""Online i-vectors against their definition: frame by frame, one Gaussian at a time, with a dense solution."""

from dataclasses import replace
from pathlib import Path

import kaldi_writer as writer
import numpy as np
import pytest
import refusing

from pipelines.frontend.ivector import IVECTOR, IvectorExtractor, Speaker
from pipelines.frontend.ivector_parameters import IvectorModel, IvectorOptions, Pacing, SilenceWeights
from pipelines.frontend.kaldi import KaldiMfcc
from pipelines.frontend.kaldi_parameters import KaldiFeatures
from pipelines.frontend.online_cmvn import CmvnOptions, OnlineCmvn
from pipelines.models.kaldi import features as feature_files
from pipelines.models.kaldi import ivector
from profiler.spans import Recorder
from tests.each import each
from tests.pipelines.refusing import refusal

FRAMES = 339
CEPSTRA = 6
VOSK = IvectorOptions(max_count=100.0)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> IvectorModel:
    folder = tmp_path_factory.mktemp("extractor")
    writer.write_ivector(folder, seed=3, cepstra=CEPSTRA, d=9, gaussians=12)
    return ivector.read(folder, CEPSTRA)


def speech(seed: int = 2, frames: int = FRAMES, width: int = CEPSTRA) -> np.ndarray:
    slow, fast = np.random.default_rng(seed).normal(0, [[[0.2]], [[2]]], (2, frames, width))
    return (np.cumsum(slow, axis=0) + fast).astype("f4")


def normalised(cepstra: np.ndarray, cmvn: OnlineCmvn) -> np.ndarray:
    """Each frame with the statistics of the frames before it, and global ones, added up for it alone."""
    options, rows = cmvn.options, []
    total = cmvn.statistics[0, -1]
    width = cepstra.shape[1]
    for t, frame in enumerate(cepstra.astype(float)):
        window = cepstra[max(t + 1 - options.cmn_window, 0) : t + 1].astype(float)
        borrowed = min(options.cmn_window - len(window), options.global_frames)
        count = len(window) + borrowed
        mean = (window.sum(0) + borrowed * cmvn.statistics[0, :-1] / total) / count
        square = ((window**2).sum(0) + borrowed * cmvn.statistics[1, :-1] / total) / count
        scale = 1 / np.sqrt(square - mean**2) if options.norm_vars else np.ones(width)
        skip = np.isin(np.arange(width), options.skipped)
        rows.append(np.where(skip | (not options.norm_means), frame, (frame - mean) * scale))
    return np.array(rows)


def transformed(frames: np.ndarray, model: IvectorModel) -> np.ndarray:
    padded = np.pad(frames, ((model.left_context, model.right_context), (0, 0)), mode="edge")
    spliced = [padded[i : i + len(frames)] for i in range(model.left_context + 1 + model.right_context)]
    return np.hstack([*spliced, np.ones((len(frames), 1))])[:, : model.transform.shape[1]] @ model.transform.T.astype(
        float
    )


def chosen(likelihoods: np.ndarray, options: IvectorOptions, weight: float) -> list[tuple[int, float]]:
    """Gaussians and posteriors of a frame, as Kaldi prunes them: the lighter the frame, the fewer."""
    posteriors = np.exp(likelihoods - likelihoods.max())
    share = min(options.min_post / abs(weight), 0.99)
    found = [g for g in np.argsort(-posteriors) if posteriors[g] > share or not share]
    found = found[: options.num_gselect]
    least = share * posteriors[found].sum()
    found = [found[0], *(g for g in found[1:] if posteriors[g] >= least)]
    total = posteriors[found].sum()
    return [(int(g), posteriors[g] / total) for g in found]


Update = tuple[list[int], list[float]]


def expected(cepstra: np.ndarray, model: IvectorModel, updates: list[Update]) -> tuple[list[np.ndarray], int]:
    """The i-vector after each update (frames, changes of their weights), and how many Gaussians were accumulated."""
    options = model.options
    clean = transformed(normalised(cepstra, model.cmvn), model)
    plain = clean if options.online_cmvn_iextractor else transformed(cepstra, model)
    d, prior_mean = model.dimension, model.prior_offset * np.eye(model.dimension)[0]
    triangle = np.tril_indices(d)
    count, gaussians, made = 0.0, 0, []
    quadratic, linear = np.zeros((d, d)), np.zeros(d)
    for frames, changes in updates:
        for t, change in zip(frames, changes, strict=True):
            x = clean[t]
            likelihoods = model.constants + model.means_invvars @ x - 0.5 * model.inv_vars @ x**2
            for g, posterior in chosen(likelihoods, options, change):
                weight, full = change * options.posterior_scale * posterior, np.zeros((d, d))
                full[triangle] = model.quadratics[g]
                full = full + np.tril(full, -1).T
                linear = linear + weight * plain[t] @ model.projections[g]
                quadratic = quadratic + weight * full
                gaussians += 1
            count += change * options.posterior_scale
        prior = max(count, options.max_count) / options.max_count if options.max_count else 1.0
        made.append(np.linalg.solve(quadratic + prior * np.eye(d), linear + prior * prior_mean) - prior_mean)
    return made, gaussians


ALL = list(range(FRAMES))
REVISED: list[Update] = [
    (ALL[:120], [1e-3 if t < 90 else 1.0 for t in ALL[:120]]),
    (ALL[:30], [0.999] * 30),
    (ALL[100:], [-0.999 if t < 120 else 1.0 for t in ALL[100:]]),
]
"""Silence, of which the first 30 frames turn out to be speech; then 20 frames of speech that turn out to be silence."""


@each(
    "options, cmvn",
    [
        (VOSK, CmvnOptions()),
        (replace(VOSK, max_count=7.0), CmvnOptions(cmn_window=50, global_frames=20)),
        (replace(VOSK, max_count=0.0, num_gselect=2, min_post=0.1), CmvnOptions(norm_vars=True, skip_dims="0:3")),
        (replace(VOSK, num_gselect=40, min_post=0.0), CmvnOptions(norm_means=False)),
        (replace(VOSK, online_cmvn_iextractor=True, posterior_scale=1.0), CmvnOptions(norm_vars=True)),
    ],
)
@each("affine", [False, True])
def test_ivectors_are_those_of_the_definition(written, options, cmvn, affine):
    mean, variance = np.random.default_rng(3).uniform([[-3], [1]], [[3], [4]], (2, CEPSTRA))
    statistics = 4000.0 * np.array([[*mean, 1], [*(variance + mean**2), 0]])
    transform = np.float32(10) * written.transform[:, : None if affine else -1]
    model = replace(written, options=options, cmvn=OnlineCmvn(statistics, cmvn), transform=transform)
    cepstra, speaker, total = speech(), Speaker(IvectorExtractor(model)), 0
    wanted, gaussians = expected(cepstra, model, REVISED)
    for (frames, changes), right in zip(REVISED, wanted, strict=True):
        made, work = speaker.estimate(cepstra, np.array(frames), np.array(changes))
        np.testing.assert_allclose(made, right, atol=1e-3)
        assert work[1:] == (1, len(frames))
        total += work[0]
    assert total == gaussians


def weights_of(pacing: Pacing, first: int, turns: list[tuple[int, int, str]]) -> list[dict[int, float]]:
    """Changes of each frame's weight, by hand. `turns`: frames ready, and before; the best path, a letter a row."""
    current: dict[int, float] = {}
    found = []
    for ready, before, path in turns:
        wanted, rows = {}, -(-(ready - first) // pacing.subsampling)
        oldest = max(max(-(-(before - first) // pacing.subsampling), len(path), 0) - 100, 0)
        latest = current.get(oldest - 1, pacing.silence_weight)
        for row in range(oldest, max(rows, len(path))):
            if row < len(path):
                latest = pacing.silence_weight if path[row] == "s" else 1.0
            wanted[row] = latest
        changes = {row: weight - current.get(row, 0.0) for row, weight in wanted.items()}
        current |= wanted
        each = range(pacing.subsampling)
        found.append({first + row * len(each) + i: c for row, c in changes.items() if c for i in each})
    return found


@each("each, first", [(1, 0), (3, 0), (3, 27)])
@each("weight", [1e-3, 1.0])
@each("known", [90, 1000])
def test_frames_of_silence_count_little_as_far_back_as_they_may_change(each, first, weight, known):
    """The path lags behind, changes its mind about the past, and says nothing new for a while (`known` rows of it)."""
    rng = np.random.default_rng(each)
    pacing, asked, path, before = Pacing(24, each, weight), list[tuple[int, int, str]](), "", 0
    for turn in range(1, 60):
        ready = first + turn * 20 - 5
        while turn % 5 and len(path) < (ready - first) // each - 8:
            path += rng.choice(["s", "sss", "aaaa"])
        path = path[:-7] + "".join(rng.choice(["s", "a"], len(path[-7:])))
        asked.append((ready, before, path))
        before = ready
    weights = SilenceWeights(pacing, first)
    for (ready, before, path), wanted in zip(asked, weights_of(pacing, first, asked), strict=True):
        silent = np.array([letter == "s" for letter in path[-known:]], bool)
        frames, changes = weights.changes(ready, before, silent, len(path))
        made = dict(zip(frames.tolist(), changes.tolist(), strict=True))
        if known > 100 or len(path) <= known:
            assert made == wanted
        assert sorted(made) == list(made)


@pytest.mark.parametrize("chunk", [3200, 100_000])
def test_the_ivectors_of_a_stream_are_those_of_the_pieces_that_vosk_takes(chunk, tmp_path):
    pytest.importorskip("kaldi_native_fbank", reason="Kaldi's features need kaldi-native-fbank")
    writer.write_ivector(tmp_path, seed=5, d=7)
    plain, pacing = KaldiFeatures(norm_means=False), Pacing(24, 3, 1e-3)
    model = ivector.read(tmp_path, plain.num_ceps)
    front = KaldiMfcc(plain, None, model, None, pacing)
    samples = np.random.default_rng(1).normal(0, 0.1, 40_011).astype(np.float32)
    cepstra = KaldiMfcc(plain).features(samples)
    n, (before, after) = len(cepstra), (7, 30)
    path = "".join(np.random.default_rng(2).choice(["sss", "aaaa"], n))
    heard, given, decoded, asked = front.start(samples), 0, 0, list[tuple[int, int, str]]()
    blocks, vectors = [], []
    updates: list[Update] = []
    waiting: dict[int, float] = {}
    pieces = [max((end - 400) // 160 + 1, 0) for end in range(0, len(samples), 3200)]
    while decoded < n:
        end = decoded + 24 + after
        while heard.ready < min(end, n):
            given += chunk
            list(heard.advance(given))
        silent = np.array([letter == "s" for letter in path[: decoded // 3]], bool)
        work = [piece.work for piece in heard.adapt(end, silent, decoded // 3) if piece.stage == IVECTOR]
        blocks.append(heard.rows(decoded, min(24, n - decoded), (before, after)))
        # By hand: sound comes in pieces of 0.2 s, and each one in its turn asks for weights.
        place = next((i for i, ready in enumerate(pieces) if ready >= end), len(pieces))
        ready = n if end > n else pieces[place] - 1 if place < len(pieces) else n - 1
        last = asked[-1][0] if asked else 0
        if ready > last:
            asked.append((ready, max((pieces[place - 1] if end <= n else n) - 1, 0), path[: decoded // 3]))
            for t, change in weights_of(pacing, 0, asked)[-1].items():
                waiting[t] = waiting.get(t, 0.0) + change
            frames = sorted(t for t in waiting if t < ready)
            updates.append((frames, [waiting.pop(t) for t in frames]))
            assert len(work) == 1
        vectors += [len(updates) - 1] * (-(-end // 24) - len(vectors))
        decoded += 24
    made, _ = expected(cepstra, model, updates)
    for number, block in enumerate(blocks):
        rows = np.arange(24 * number - before, 24 * number - before + len(block))
        np.testing.assert_array_equal(block[:, :13], cepstra[rows.clip(0, n - 1)])
        np.testing.assert_allclose(block[:, 13:], [made[vectors[max(t, 0) // 24]] for t in rows], atol=1e-3)
    assert front.lookahead == 0


def test_an_extractor_is_read_back(tmp_path):
    writer.write_ivector(tmp_path, seed=5, d=7)
    model = ivector.read(tmp_path, 13)
    rng = np.random.default_rng(5)
    matrices, halves = rng.normal(0, 0.5, (6, 5, 7)), rng.normal(0, 0.5, (6, 5, 5))
    scaled = (halves @ halves.transpose(0, 2, 1) + np.eye(5)) @ matrices
    np.testing.assert_allclose(model.projections, scaled, rtol=1e-5, atol=1e-6)
    full = matrices.transpose(0, 2, 1) @ scaled
    np.testing.assert_allclose(model.quadratics, [each[np.tril_indices(7)] for each in full], rtol=1e-4, atol=1e-5)
    weights, variances = rng.dirichlet(np.ones(6)), rng.uniform(0.5, 2, (6, 5))
    means = rng.normal(0, 1, (6, 5))
    np.testing.assert_allclose(model.means_invvars, means / variances, rtol=1e-5, atol=1e-6)
    constants = np.log(weights) - 0.5 * (np.log(2 * np.pi * variances) + means**2 / variances).sum(1)
    np.testing.assert_allclose(model.constants, constants, rtol=1e-5, atol=1e-5)
    assert (model.left_context, model.right_context, model.prior_offset, model.dimension) == (2, 1, 4.0, 7)
    assert model.cmvn.statistics[0, -1] == 1e9


def test_without_a_file_of_options_they_are_vosks_and_with_one_kaldis(tmp_path):
    folder = writer.write_ivector(tmp_path)
    assert ivector.read(tmp_path, 13).options == IvectorOptions(max_count=100.0)
    (tmp_path / "conf").mkdir()
    conf = tmp_path / "conf/ivector_extractor.conf"
    conf.write_text("--ivector-period=10\n--diag-ubm=/elsewhere/final.dubm\n--max-count=75 # frames\n--num-gselect=3\n")
    assert ivector.read(tmp_path, 13).options == IvectorOptions(num_gselect=3, max_count=75.0)
    conf.write_text("--num-gselect=0\n")
    refusal("--num-gselect must lie within 1 and 1,000", ivector.read, tmp_path, 13)
    conf.unlink()
    (folder / "online_cmvn.conf").write_text("")
    (folder / "splice.conf").unlink()
    (folder / "final.mat").write_bytes(writer.transform(np.ones((5, 9 * 13))))
    model = ivector.read(tmp_path, 13)
    assert model.cmvn.options == CmvnOptions()
    assert (model.left_context, model.right_context) == (4, 4)


def extractor(gaussians: int, covariance: bytes = b"\5\0\0\0") -> bytes:
    data = writer.extractor(np.ones((gaussians, 5, 7)), np.array([np.eye(5)] * gaussians))
    return data.replace(b"DP \4\5\0\0\0", b"DP \4" + covariance, 1)


@each(
    "name, content, sentence",
    [
        ("final.ie", extractor(5), "number of Gaussians is 5, expected 6 to 6"),
        ("final.ie", extractor(6, b"\xff\xff\xff\x07"), "inverse covariance of Gaussian 0 needs"),
        ("global_cmvn.stats", b"[ 1 2 3\n4 5 6 ]", "2 rows of 14 values and a count, found 2 × 3"),
        ("global_cmvn.stats", b"[ " + b"nan " * 14 + b"\n" + b"1 " * 14 + b"]", "no matrix of numbers"),
        ("global_cmvn.stats", b"[ " + b"0 " * 14 + b"\n" + b"1 " * 14 + b"]", "and a count"),
        ("splice.conf", b"--left-context=3", "13 cepstra spliced −3 … \\+4 are 104"),
        ("online_cmvn.conf", b"--skip-dims=0:13", "numbers below 13"),
        ("online_cmvn.conf", b"--cmn-window=x", "cannot be used as a value"),
        ("final.dubm", None, "final.dubm is missing"),
    ],
)
def test_damaged_extractors_are_refused(name, content, sentence, tmp_path):
    path = writer.write_ivector(tmp_path) / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    refusal(sentence, ivector.read, tmp_path, 13)


@each("name", ("final.ie", "final.dubm", "final.mat", "global_cmvn.stats", "splice.conf"))
def test_broken_files_are_refused_or_work(name, tmp_path):
    path = writer.write_ivector(tmp_path) / name
    data, rng = path.read_bytes(), np.random.default_rng(7)

    def load(folder: Path) -> None:
        Speaker(IvectorExtractor(ivector.read(folder, 13))).estimate(speech(2, 40, 13), np.arange(40), np.ones(40))

    with np.errstate(all="ignore"):
        for _ in range(20):
            path.write_bytes(refusing.flipped(data, rng))
            refusing.refused(load, tmp_path)
            path.write_bytes(data[: rng.integers(len(data))])
            sentence = refusing.refused(load, tmp_path) or ""
            assert name in sentence or path.suffix in (".conf", ".stats")


def test_tables_that_would_take_gigabytes_are_refused_before_they_are_made(tmp_path, monkeypatch):
    writer.write_ivector(tmp_path)
    monkeypatch.setattr(ivector, "MOST_VALUES", 6 * (5 * 7 + 28) - 1)
    refusal("6 Gaussians of 5 dimensions and i-vectors of 7 values give tables of 378 va", ivector.read, tmp_path, 13)
    monkeypatch.undo()
    monkeypatch.setattr(ivector, "FEW_VALUES", 0)
    ivector.read(tmp_path, 13)
    writer.write_ivector(tmp_path, d=200)
    refusal("over 16 times those of the file", ivector.read, tmp_path, 13)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a net, at 8 kHz."""
    (tmp_path / "conf").mkdir()
    options = "--use-energy=false\n--num-ceps=13\n--allow-upsample=true\n--allow-downsample=true\n"
    (tmp_path / "conf/mfcc.conf").write_text(f"{options}--sample-frequency=8000\n")
    return tmp_path


SAMPLES = np.random.default_rng(1).normal(0, 0.1, 8000 * 9).astype(np.float32)


def test_a_net_takes_plain_cepstra_then_the_ivector_of_the_frame(folder):
    plain = feature_files.of_net(folder)
    assert (plain.ivectors, plain.cmvn, plain.text, plain.parameters.rate) == (None, None, "13 MFCCs", 8000)
    cepstra = KaldiMfcc(KaldiFeatures(**{**vars(plain.parameters), "norm_means": False})).features(SAMPLES)
    np.testing.assert_array_equal(KaldiMfcc(plain.parameters).features(SAMPLES), cepstra)

    writer.write_ivector(folder)
    made = feature_files.of_net(folder)
    assert made.ivectors is not None
    assert made.text == "13 MFCCs, i-vectors of 7"
    front = KaldiMfcc(made.parameters, None, made.ivectors, made.cmvn)
    front.warm_up()
    recorder, count = Recorder(), len(cepstra)
    lane = recorder.lane("decode", decode=True)
    front.stages(recorder)
    both = front.features(SAMPLES, 5, lane)
    assert both.shape == (count, front.dimension) == (count, 20)
    np.testing.assert_array_equal(both[:, :13], cepstra)
    alone, _ = Speaker(IvectorExtractor(made.ivectors)).estimate(cepstra, np.arange(count), np.ones(count))
    np.testing.assert_allclose(both[-1, 13:], alone, atol=1e-3)

    costs, spans = front.costs(), lane.latest(lane.recorded)
    names = np.array([recorder.stages[stage].name for stage in spans["stage"]])
    assert set(names) == costs.keys() == {"frontend.mfcc", "frontend.normalise", "frontend.ivector"}
    mine = spans[names == "frontend.ivector"]
    assert (mine["frames"].sum(), mine["first_frame"][0], mine["work2"].sum()) == (count, 5, count)
    # Splicing and LDA of two copies, the background model: 2 · 2 · 52 · 5 + 2 · 2 · 5 · 6 a frame.
    assert costs["frontend.ivector"].operations["gemm"].of(mine).sum() == count * (1040 + 120)


def test_the_input_of_a_net_is_normalised_online_where_the_folder_has_statistics(folder):
    writer.write_ivector(folder)
    (folder / "am").mkdir()
    (folder / "am/global_cmvn.stats").write_bytes((folder / "ivector/global_cmvn.stats").read_bytes())
    made = feature_files.of_net(folder)
    assert made.cmvn is not None
    plain = KaldiMfcc(made.parameters).features(SAMPLES)
    features = KaldiMfcc(made.parameters, None, made.ivectors, made.cmvn).features(SAMPLES)
    np.testing.assert_allclose(features[:, :13], normalised(plain, made.cmvn), atol=1e-3)
    unchanged = KaldiMfcc(made.parameters, None, made.ivectors).features(SAMPLES)
    np.testing.assert_array_equal(features[:, 13:], unchanged[:, 13:])


def test_other_features_of_a_net_are_refused(folder):
    (folder / "conf/pitch.conf").touch()
    refusal("pitch.conf are not computed", feature_files.of_net, folder)
    for name in ("pitch.conf", "mfcc.conf"):
        (folder / "conf" / name).unlink()
    refusal("mfcc.conf is missing", feature_files.of_net, folder)
