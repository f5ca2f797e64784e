"""Models derived from another: untied, of a single stream; their cache; which one a configuration opens."""

import numpy as np
import pytest
import sphinx_writer as writer

from pipelines.config import Config, assign
from pipelines.models import derived, estimation, opening, single_stream, sphinx
from profiler.errors import Cancelled
from profiler.files import cache as store
from tests.pipelines.refusing import refusal


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def base(tmp_path):
    return sphinx.load(writer.write_model(tmp_path / "model", densities=20))


def test_the_heaviest_gaussians_are_copied(base):
    model = derived.untied(base, 6)
    assert model.means.shape == (writer.N_SENONES, 3, 6, 13)
    assert model.is_continuous
    for senone in range(writer.N_SENONES):
        for s in range(3):
            weights = base.weights[s, :, senone].astype(float)
            best = sorted(range(20), key=lambda k: (-weights[k], k))[:6]
            book = base.senone_codebook[senone]
            np.testing.assert_array_equal(model.means[senone, s], base.means[book, s, best])
            np.testing.assert_array_equal(model.variances[senone, s], base.variances[book, s, best])
            expected = weights[best] / weights[best].sum()
            np.testing.assert_allclose(model.weights[s, :, senone], expected, rtol=1e-6)
    assert "6 Gaussians per senone and stream, untied from the ptm model" in model.origin


def test_a_derived_model_is_found_again_and_cannot_be_written(base, tmp_path, monkeypatch):
    other = sphinx.load(writer.write_model(tmp_path / "other", densities=20, seed=1))
    first, larger, others = derived.untied(base, 6), derived.untied(base, 7), derived.untied(other, 6)
    assert len({model.checksum for model in (base, first, larger, others)}) == 4
    assert not np.array_equal(first.means, others.means)
    monkeypatch.setattr(derived, "_untie", None)  # a second derivation would fail
    again = derived.untied(base, 6)
    assert again.checksum == first.checksum
    for array in (again.means, again.variances, again.weights):
        assert not array.flags.writeable
        while isinstance(array.base, np.ndarray):
            array = array.base
        assert isinstance(array, np.memmap)


def test_without_a_cache_a_model_is_made_all_the_same(base, tmp_path, monkeypatch):
    kept = derived.untied(base, 6)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "file"))
    made = derived.untied(base, 6)
    assert made.checksum == kept.checksum
    np.testing.assert_array_equal(made.means, kept.means)
    assert not made.means.flags.writeable


class Broken(Exception):
    pass


@pytest.mark.parametrize("make", [derived.untied, single_stream.resampled])
@pytest.mark.parametrize("how", ["cancelled", "failed"])
def test_an_interrupted_derivation_leaves_nothing(base, cache, make, how, monkeypatch):
    def progress(title, fraction):
        if fraction and how == "failed":
            raise Broken

    monkeypatch.setattr(single_stream, "AT_ONCE", 4)
    asked = iter([False] + [True] * 99)
    with pytest.raises(Cancelled if how == "cancelled" else Broken):
        make(base, 6, progress, lambda: how == "cancelled" and next(asked))
    assert not cache.exists()


def test_single_stream_is_the_same_each_time_and_near_the_density(base, cache):
    model = single_stream.resampled(base, 8)
    assert model.means.shape == (writer.N_SENONES, 1, 8, 39)
    np.testing.assert_allclose(model.weights.sum(1), 1.0, rtol=1e-5)
    assert "not re-estimated on speech" in model.origin
    means, weights = model.means.copy(), model.weights.copy()
    for file in cache.iterdir():
        file.unlink()
    np.testing.assert_array_equal(single_stream.resampled(base, 8).means, means)
    # EM keeps the first two moments of what it sees: those of the density, but for the draw.
    tied = base.weights / base.weights.sum(1, keepdims=True)
    for senone in range(writer.N_SENONES):
        book = base.senone_codebook[senone]
        mean = np.einsum("sk,skd->sd", tied[:, :, senone], base.means[book]).ravel()
        square = np.einsum("sk,skd->sd", tied[:, :, senone], base.variances[book] + base.means[book] ** 2).ravel()
        deviation = np.sqrt(square - mean**2)
        mine = weights[0, :, senone] @ means[senone, 0]
        assert np.abs((mine - mean) / deviation).max() < 5 / np.sqrt(single_stream.SAMPLES)
        spread = weights[0, :, senone] @ (model.variances[senone, 0] + means[senone, 0] ** 2)
        np.testing.assert_allclose(np.sqrt(spread - mine**2), deviation, rtol=0.15)


def test_real_frames_outweigh_the_samples_where_there_are_many(base):
    """A cluster of frames far from the model's own density draws Gaussians and weight to it."""
    frames = np.random.default_rng(0).normal(40.0, 0.5, (300, 39)).astype(np.float32)
    given = estimation.Frames(
        features=frames,
        which=np.arange(300, dtype=np.int32),
        shares=np.ones(300, np.float32),
        first=np.repeat([0, 300], [4, writer.N_SENONES - 3]).astype(np.int64),  # all of senone 3
    )
    arrays = derived.create((writer.N_SENONES, 1, 6, 39))
    single_stream.fit(base, arrays, "", given, prior=100.0, samples=200)
    near = np.abs(arrays["means"][:, 0] - 40).max(2) < 2
    weight = (arrays["weights"][0].T * near).sum(1)
    assert weight[3] == pytest.approx(0.75, abs=0.02)
    assert (np.delete(weight, 3) == 0).all()


def test_which_model_a_configuration_opens(tmp_path):
    tied = writer.write_model(tmp_path / "tied", densities=20)
    config = assign(Config(), {"model_directory": str(tied)})
    assert opening.open_model(config).kind == "ptm"
    config = assign(config, {"model": "continuous", "gmm.components": 9})
    assert opening.open_model(config).means.shape == (15, 3, 9, 13)
    config = assign(config, {"model": "single-stream"})
    assert opening.open_model(config).means.shape == (15, 1, 9, 39)


@pytest.mark.parametrize("streams", [1, 3])
def test_a_continuous_directory_opens_as_it_is(tmp_path, streams):
    folder = writer.write_continuous(tmp_path / "own", streams, densities=5)
    config = assign(Config(), {"model_directory": str(folder)})
    for form in ("ptm", "continuous"):
        model = opening.open_model(assign(config, {"model": form}))
        assert model.means.shape == (15, streams, 5, 39 // streams)
        assert model.directory == folder
    single = opening.open_model(assign(config, {"model": "single-stream"}))
    assert single.means.shape[1:3] == (1, 5 if streams == 1 else config.gmm.components)


def test_a_model_re_estimated_on_speech_goes_before_the_resampled_one(base):
    resampled = single_stream.resampled(base, 8)
    path = single_stream.trained_file(base, 8)
    path.parent.mkdir(parents=True)
    arrays = {name: getattr(resampled, name) + 1 for name in derived.ARRAYS}
    store.write(path, arrays, {"origin": "re-estimated on a test"})
    found = single_stream.best(base, 8)
    assert found.origin == "re-estimated on a test"
    np.testing.assert_array_equal(found.means, resampled.means + 1)
    assert found.checksum != resampled.checksum
    # A damaged one is no reason to take the resampled one: it would give other words.
    path.write_bytes(b"half")
    refusal(r"re-estimated on speech cannot be used .* train it again", single_stream.best, base, 8)
