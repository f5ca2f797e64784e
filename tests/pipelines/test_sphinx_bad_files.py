"""Whatever a model directory holds, loading it succeeds or ends in one error of one sentence."""

import os
from functools import partial

import numpy as np
import pytest
import refusing
import sphinx_writer as writer

from pipelines.models import sphinx
from profiler.errors import BadInput

FILES = ["feat.params", "mdef", "means", "variances", "transition_matrices", "sendump"]


refused = partial(refusing.refused, sphinx.load)


@pytest.fixture
def folder(tmp_path):
    return writer.write_model(tmp_path / "model", densities=3)


@pytest.mark.parametrize("name", FILES)
def test_missing_and_empty_files(folder, name):
    (folder / name).write_bytes(b"")
    assert name in refused(folder)
    (folder / name).unlink()
    assert refused(folder) is not None
    (folder / name).mkdir()
    assert name in refused(folder)


@pytest.mark.parametrize("name", FILES[1:])
def test_a_file_cut_anywhere_is_refused(folder, name):
    data = (folder / name).read_bytes()
    cuts = np.random.default_rng(5).integers(1, len(data), 20).tolist()
    for cut in [*cuts, *range(1, 24), len(data) - 1, len(data) - 4]:
        (folder / name).write_bytes(data[:cut])
        sentence = refused(folder)
        assert sentence is not None, cut
        assert name in sentence


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_flipped_bytes_never_end_in_a_traceback(folder, name):
    data = (folder / name).read_bytes()
    rng = np.random.default_rng(6)
    outcomes = []
    for _ in range(50):
        broken = bytearray(data)
        # Most of the fields that matter are near the front.
        reach = len(data) if rng.random() < 0.3 else min(200, len(data))
        for at in rng.integers(0, reach, rng.integers(1, 4)):
            broken[at] ^= rng.integers(1, 256)
        (folder / name).write_bytes(broken)
        outcomes.append(refused(folder) is not None)
    assert any(outcomes)
    if name in ("means", "variances", "transition_matrices"):
        assert np.mean(outcomes) > 0.8  # the checksum sees what lies behind the header


@pytest.mark.parametrize("name", FILES[1:])
def test_bytes_behind_the_end(folder, name):
    with (folder / name).open("ab") as file:
        file.write(b"\0\0\0\0")
    assert name in refused(folder)


def test_broken_text_definitions(folder):
    good = writer.text_mdef()
    (folder / "mdef").write_bytes(good)
    assert refused(folder) is None
    rng = np.random.default_rng(7)
    for _ in range(50):
        broken = bytearray(good)
        for at in rng.integers(0, len(good), 2):
            broken[at] = rng.integers(32, 127)
        (folder / "mdef").write_bytes(broken)
        refused(folder)
    for cut in rng.integers(1, len(good) - 30, 40):
        (folder / "mdef").write_bytes(good[:cut])
        assert "mdef" in refused(folder)


@pytest.mark.parametrize("name", FILES)
def test_foreign_files(folder, name):
    (folder / name).write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20)
    assert name in refused(folder)


def test_gaussians_of_another_shape(folder):
    shapes = {
        (4, 3, 5, 13): "variances",  # another number of densities than the variances
        (5, 3, 3, 13): "variances",
    }
    for shape, other in shapes.items():
        (folder / "means").write_bytes(writer.gaussians(np.zeros(shape)))
        assert other in refused(folder)
    for name in ("means", "variances"):
        (folder / name).write_bytes(writer.gaussians(np.ones((4, 3, 3, 12))))
    assert "front end makes (13, 13, 13)" in refused(folder)
    for name in ("means", "variances"):
        (folder / name).write_bytes(writer.gaussians(np.ones((5, 3, 3, 13))))
    assert "one codebook per CI phone" in refused(folder)
    for name in ("means", "variances"):
        (folder / name).write_bytes(writer.gaussians(np.ones((4, 3, 8, 13))))
    assert "3 rows, the means have 8 densities" in refused(folder)


def test_continuous_models_of_the_wrong_shape(tmp_path):
    folder = writer.write_continuous(tmp_path / "model")
    for name in ("means", "variances"):
        (folder / name).write_bytes(writer.gaussians(np.ones((writer.N_SENONES, 1, 5, 40))))
    assert "means has streams of (40,) dimensions" in refused(folder)
    assert "the front end makes (39,)" in refused(folder)
    for name in ("means", "variances"):
        (folder / name).write_bytes(writer.gaussians(np.ones((writer.N_SENONES - 1, 3, 5, 13))))
    assert "14 codebooks, mdef has 4 CI phones and 15 senones" in refused(folder)
    folder = writer.write_continuous(tmp_path / "other", streams=3)
    for name in ("means", "variances"):
        (folder / name).write_bytes(writer.gaussians(np.ones((writer.N_SENONES, 3, 6, 13))))
    assert "mixture_weights has 15 senones, 3 streams and 5 densities" in refused(folder)
    (folder / "mixture_weights").unlink()
    assert "neither sendump nor mixture_weights" in refused(folder)


def test_values_that_are_no_numbers(folder):
    values = np.ones((4, 3, 3, 13))
    values[1, 1, 1, 1] = np.nan
    (folder / "means").write_bytes(writer.gaussians(values))
    assert "means: a value is not a finite number" in refused(folder)
    values[1, 1, 1, 1] = 1e30
    (folder / "means").write_bytes(writer.gaussians(values))
    assert "means: a value is beyond" in refused(folder)


def test_other_features_are_refused(folder):
    (folder / "feat.params").write_text("-feat s2_4x\n")
    assert "the front end makes (12, 24, 3, 12) from feat.params" in refused(folder)
    (folder / "feat.params").write_text(writer.FEAT_PARAMS)
    (folder / "feature_transform").write_bytes(b"x")
    assert "is not a feature transform file" in refused(folder)


def test_checksum_mismatch_is_named(folder):
    data = bytearray((folder / "means").read_bytes())
    data[-40] ^= 1
    (folder / "means").write_bytes(data)
    assert "checksum" in refused(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_regular_file_is_refused_unread(folder, name):
    """A pipe waits for ever and a device never ends."""
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert "pipe or a device" in refused(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    assert "pipe or a device" in refused(folder)


@pytest.mark.parametrize(
    ("name", "n_bytes"), [("feat.params", 1 << 17), ("mdef", 40 << 20), ("means", 1 << 30), ("sendump", 80 << 20)]
)
def test_files_larger_than_their_format_needs_are_refused_unread(folder, name, n_bytes):
    with (folder / name).open("r+b") as file:
        file.truncate(n_bytes)
    assert "is not read" in refused(folder)


def test_text_definitions_are_read_line_by_line(folder):
    """Two million short lines, a line of millions of fields: neither is ever held as objects."""
    head = writer.text_mdef().split(b"#\n")[0]
    for body in (b"a\n" * 2_000_000, b"a " * 2_000_000, writer.text_mdef()[-60:] * 20_000):
        (folder / "mdef").write_bytes(head + body)
        assert "mdef" in refused(folder)
    promised = writer.text_mdef().replace(b"5 n_tri", b"999999999 n_tri")
    (folder / "mdef").write_bytes(promised)
    assert "promises 1000000003" in refused(folder)


@pytest.mark.parametrize(
    "option", ["-wlen 1e304", "-lifter " + "9" * 4000, "-nfilt " + "9" * 30000, "-alpha nan", "-lowerf -1e300"]
)
def test_numbers_that_no_front_end_has_are_refused_in_few_words(folder, option):
    from pipelines.config import Config, assign
    from pipelines.models.opening import open_model

    (folder / "feat.params").write_text(f"-feat 1s_c_d_dd\n-nfft 0\n{option}\n")
    with pytest.raises(BadInput) as caught:
        open_model(assign(Config(), {"model_directory": str(folder)}))
    assert len(str(caught.value)) < 600
