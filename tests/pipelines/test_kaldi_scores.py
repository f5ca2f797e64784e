"""Scores of Kaldi models against their mixtures written out in float64, and a whole run of a folder."""

from __future__ import annotations

from pathlib import Path

import kaldi_writer as writer
import numpy as np
import pytest
import soundfile

from pipelines.config import Config, assign
from pipelines.models import kaldi
from pipelines.models.kaldi import gmm, transitions
from pipelines.models.kaldi.binary import Reader
from pipelines.models.opening import front_end, open_model
from pipelines.scoring import build_scorer
from profiler.spans import NullLane
from tests.each import each
from tests.pipelines.kaldi_graphs import put_graph
from tests.pipelines.whole_runs import run

FRAMES = 1000
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
def test_a_thousand_frames_of_real_models(shared_models: Path, speech: np.ndarray, name: str) -> None:
    folder = shared_models / name
    features = front_end(kaldi.load(folder)).features(speech)[:FRAMES]
    assert len(features) == FRAMES
    path = folder / ("final.alimdl" if name == "mfa-triphone-lda" else "final.mdl")
    # Thousands of nats down float32 has no thousandths.
    np.testing.assert_allclose(scored(folder, features), exact(path, features), atol=1e-3, rtol=2e-6)


def test_mixtures_that_are_filled_up_score_alike_by_all_strategies(tmp_path: Path) -> None:
    folder = writer.write_model(tmp_path / "model", seed=3)
    rng = np.random.default_rng(4)
    model = kaldi.load(folder)
    assert (model.weights == 0).any()
    features = np.repeat(rng.normal(0, 4, (16, 39)), 4, axis=0).astype(np.float32)
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


@pytest.mark.slow
def test_a_folder_is_run_from_sound_to_words(tmp_path: Path, bundled_speech: Path) -> None:
    folder = put_graph(writer.write_model(tmp_path / "model"), {"ab": (2, 3), "ba": (3, 2)}, silence=1)
    config = assign(Config(), {"model": "continuous", "model_directory": str(folder), "search.beam": 40.0})
    outcome = run(config, [bundled_speech / "08-kal16-short.flac"], tmp_path / "run.asrs")
    assert outcome.state == "closed"
    (utterance,) = outcome.result.utterances
    assert set(utterance.hypothesis.split()) <= {"ab", "ba"}
    assert utterance.hypothesis
    assert any("Kaldi GMM final.mdl: 3 phones, 8 pdfs" in note for note in outcome.notes)
