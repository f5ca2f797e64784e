"""Readers of CMUSphinx files against files that an independent writer made."""

import os
import struct
from functools import partial

import numpy as np
import pytest
import refusing
import sphinx_writer as writer

from pipelines.config import Config, assign
from pipelines.models import sphinx
from pipelines.models.opening import open_model
from pipelines.models.sphinx import definition as mdef
from pipelines.models.sphinx import parameters
from pipelines.models.sphinx.definition import BEGIN, END, INTERNAL, SINGLE
from tests.each import each
from tests.pipelines.refusing import refusal


@each("order", ["<", ">"])
def test_binary_and_text_definitions_say_the_same(tmp_path, order):
    (tmp_path / "binary").write_bytes(writer.bmdf(order))
    (tmp_path / "text").write_bytes(writer.text_mdef())
    binary, text = mdef.read(tmp_path / "binary"), mdef.read(tmp_path / "text")
    for definition in (binary, text):
        assert definition.phones == writer.PHONES
        assert definition.filler.tolist() == writer.FILLER
        assert definition.silence == 3
        assert (definition.n_senones, definition.n_ci_senones) == (15, 12)
        assert definition.senone_phone.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3 + [1, 2, 2]
        # Tied senone 12 is a first, a middle and a last state; any of the three would do.
        assert definition.senone_state[:12].tolist() == [0, 1, 2] * 4
        assert definition.sseq[definition.triphone(1, 2, 2, INTERNAL)].tolist() == [12, 4, 5]
        assert [definition.tmats[p] for p in range(4)] == [0, 1, 2, 3]
    np.testing.assert_array_equal(binary.sseq[binary.ssid], text.sseq[text.ssid])


def test_real_triphones_by_the_rules_one_by_one():
    d = sphinx.load(sphinx.default_directory()).mdef
    data = (sphinx.default_directory() / "mdef").read_bytes()
    begin = at = 52 + struct.unpack_from("<i", data, 8)[0]  # after the comment and ten counts
    for _ in range(d.n_ci):
        at = data.index(b"\0", at) + 1
    at += -(at - begin) % 4 + 8 * struct.unpack_from("<i", data, begin - 8)[0]
    known = {}
    for p in range(d.n_ci, d.n_ci + d.n_triphones):
        ssid, _, *attributes = struct.unpack_from("<ii4B", data, at + 12 * p)
        known[tuple(attributes)] = ssid
    filler = d.filler.tolist()

    def look(base, left, right, position):
        def find(lc, rc):
            lc, rc = (d.silence if filler[c] else c for c in (lc, rc))
            for at in [position, *(q for q in range(4) if q != position)]:
                if (at, base, lc, rc) in known:
                    return known[at, base, lc, rc]
            return None

        edge_l, edge_r = (position in (BEGIN, SINGLE), position in (END, SINGLE))
        found = find(left, right)
        if found is None:
            found = find(d.silence if edge_l else left, d.silence if edge_r else right)
        return d.ci_ssid(base) if found is None else found

    rng = np.random.default_rng(1)
    kinds = set()
    for base, left, right, position in rng.integers((d.n_ci, d.n_ci, d.n_ci, 4), size=(20_000, 4)).tolist():
        expected = look(base, left, right, position)
        assert d.triphone(base, left, right, position) == expected
        kinds.add(((position, base, left, right) in known, expected == d.ci_ssid(base)))
    assert {(True, False), (False, False), (False, True)} <= kinds


def test_the_bundled_model_is_what_its_readme_says():
    model = sphinx.load(sphinx.default_directory())
    assert (model.kind, model.mdef.n_ci, model.n_senones) == ("ptm", 42, 5126)
    assert model.means.shape == model.variances.shape == (42, 3, 128, 13)
    assert model.weights.shape == (3, 128, 5126)
    assert model.transitions.shape == (42, 3, 4)
    np.testing.assert_allclose(model.transitions.sum(2), 1, rtol=1e-6)
    # Quantisation to 8 bits leaves the weights of a senone adding up to nearly one.
    assert 0.9 < model.weights.sum(1).min() <= model.weights.sum(1).max() < 1.05
    assert model.mdef.phones[model.mdef.silence] == "SIL"
    assert model.feat_params["nfilt"] == "25"
    assert model.mdef.senone_phone[:126].tolist() == [senone // 3 for senone in range(126)]


@each("order", ["<", ">"])
def test_gaussians_in_either_byte_order(tmp_path, order):
    values = np.random.default_rng(2).normal(size=(2, 3, 5, 13))
    (tmp_path / "means").write_bytes(writer.gaussians(values, order))
    table = parameters.read_gaussians(tmp_path / "means", "means")
    assert table.shape == (2, 5, (13, 13, 13))
    np.testing.assert_array_equal(np.stack(table.streams, 1), values.astype(np.float32))


def test_variances_are_raised_to_the_floor(tmp_path):
    values = np.full((1, 3, 1, 13), 2.0)
    values[0, 1, 0, 4] = 1e-9
    (tmp_path / "variances").write_bytes(writer.gaussians(values))
    table = parameters.read_variances(tmp_path / "variances")
    assert table.streams[1][0, 0, 4] == np.float32(1e-4)
    assert table.streams[0].min() == 2


def test_transitions_keep_zeros_and_raise_the_rest(tmp_path):
    counts = np.array([[[1e6, 1, 0, 0], [0, 3, 1, 0], [0, 0, 1, 1]]])
    (tmp_path / "t").write_bytes(writer.s3(counts.shape, counts))
    table = parameters.read_transitions(tmp_path / "t")
    assert table[0, 0, 1] == pytest.approx(1e-4 / (1 + 1e-4), rel=1e-3)
    assert table[0, 0, 2] == 0
    np.testing.assert_allclose(table[0, 1], [0, 0.75, 0.25, 0])


def test_mixture_weights_are_normalised_and_floored(tmp_path):
    counts = np.array([[[3.0, 1.0], [0.0, 8.0], [0.0, 0.0]]])  # one senone, three streams
    (tmp_path / "w").write_bytes(writer.s3(counts.shape, counts))
    weights = parameters.read_mixture_weights(tmp_path / "w")
    assert weights.shape == (3, 2, 1)
    np.testing.assert_allclose(weights[:, :, 0], [[0.75, 0.25], [1e-7, 1], [0.5, 0.5]], rtol=1e-5)


@each("order", ["<", ">"])
@each("padding", [0, 3])
def test_sendump_of_bytes(tmp_path, order, padding):
    levels = np.random.default_rng(3).integers(0, 256, (3, 4, 7), dtype=np.uint8)
    (tmp_path / "sendump").write_bytes(writer.sendump_8(levels, order, padding))
    weights = parameters.read_sendump(tmp_path / "sendump", 3, 4, 7)
    expected = [writer.probability(int(v)) for v in levels.ravel()]
    np.testing.assert_allclose(weights.ravel(), expected, rtol=1e-5)


@each("bits", [4, 8])
@each("count", [15, 16])
@each("senones", [6, 7])
def test_sendump_of_clusters(tmp_path, bits, count, senones):
    rng = np.random.default_rng(4)
    levels = rng.integers(0, count, (3, 5, senones), dtype=np.uint8)
    codebook = rng.permutation(200)[:16].tolist()
    (tmp_path / "sendump").write_bytes(writer.sendump_clustered(levels, codebook, bits, count))
    weights = parameters.read_sendump(tmp_path / "sendump", 3, 5, senones)
    expected = [writer.probability(codebook[v]) for v in levels.ravel()]
    np.testing.assert_allclose(weights.ravel(), expected, rtol=1e-5)


def test_small_models_load(tmp_path):
    ptm = sphinx.load(writer.write_model(tmp_path / "ptm"))
    assert (ptm.kind, ptm.n_codebooks, ptm.n_densities) == ("ptm", 4, 20)
    semi = sphinx.load(writer.write_model(tmp_path / "semi", codebooks=1))
    assert semi.kind == "semi"
    assert not semi.senone_codebook.any()
    assert semi.checksum != ptm.checksum
    refusal("is not a directory", sphinx.load, tmp_path / "nowhere")
    (tmp_path / "semi/sendump").unlink()
    refusal("neither sendump nor mixture_weights", sphinx.load, tmp_path / "semi")


HEAD, LINE = writer.text_mdef().split(b"#\n")[0], writer.text_mdef()[-60:]
FILES = ["feat.params", "mdef", "means", "variances", "transition_matrices", "sendump"]
refused = partial(refusing.refused, sphinx.load)


@each("name", FILES)
def test_what_is_not_the_file_it_is_called_is_refused(tmp_path, name):
    """A pipe waits for ever and a device never ends."""
    folder = writer.write_model(tmp_path, densities=3)
    file = folder / name
    longer = [file.read_bytes() + bytes(4)] if name != "feat.params" else []
    for data in (b"", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, *longer):
        file.write_bytes(data)
        assert name in refused(folder)
    file.unlink()
    assert refused(folder) is not None
    for make in (os.mkfifo, lambda place: place.symlink_to("/dev/zero")) if hasattr(os, "mkfifo") else ():
        make(file)
        assert "pipe or a device" in refused(folder)
        file.unlink()
    file.mkdir()
    assert name in refused(folder)


@each("name", FILES[1:])
def test_a_file_cut_anywhere_is_refused(tmp_path, name):
    refusing.refused_where_cut(sphinx.load, writer.write_model(tmp_path, densities=3), name)


def test_broken_text_definitions(tmp_path):
    folder, good, rng = writer.write_model(tmp_path, densities=3), writer.text_mdef(), np.random.default_rng(7)
    (folder / "mdef").write_bytes(good)
    assert refused(folder) is None
    for _ in range(50):
        broken = bytearray(good)
        for at in rng.integers(0, len(good), 2):
            broken[at] = rng.integers(32, 127)
        (folder / "mdef").write_bytes(broken)
        refused(folder)
    for cut in rng.integers(1, len(good) - 30, 40):
        (folder / "mdef").write_bytes(good[:cut])
        assert "mdef" in refused(folder)


BOTH, OWN = ("means", "variances"), writer.N_SENONES


def one(value):
    """Gaussians of the right shape with one value of this size."""
    values = np.ones((4, 3, 3, 13))
    values[1, 1, 1, 1] = value
    return values


@each(
    "streams, names, values, says",
    [
        (None, ["means"], np.zeros((4, 3, 5, 13)), "variances"),  # another number of densities than the variances
        (None, ["means"], np.zeros((5, 3, 3, 13)), "variances"),
        (None, BOTH, np.ones((4, 3, 3, 12)), "front end makes (13, 13, 13)"),
        (None, BOTH, np.ones((5, 3, 3, 13)), "one codebook per CI phone"),
        (None, BOTH, np.ones((4, 3, 8, 13)), "3 rows, the means have 8 densities"),
        (None, ["means"], one(np.nan), "means: a value is not a finite number"),
        (None, ["means"], one(1e30), "means: a value is beyond"),
        (1, BOTH, np.ones((OWN, 1, 5, 40)), "means has streams of (40,) dimensions, the front end makes (39,)"),
        (1, BOTH, np.ones((OWN - 1, 3, 5, 13)), "14 codebooks, mdef has 4 CI phones and 15 senones"),
        (3, BOTH, np.ones((OWN, 3, 6, 13)), "mixture_weights has 15 senones, 3 streams and 5 densities"),
    ],
)
def test_gaussians_that_do_not_fit_the_others(tmp_path, streams, names, values, says):
    """`streams`: of a continuous model; None: the small one of codebooks."""
    folder = writer.write_continuous(tmp_path, streams) if streams else writer.write_model(tmp_path, densities=3)
    for name in names:
        (folder / name).write_bytes(writer.gaussians(values))
    assert says in refused(folder)


@each(
    "name, text, says",
    [
        ("feat.params", b"-feat s2_4x\n", "the front end makes (12, 24, 3, 12) from feat.params"),
        ("feature_transform", b"x", "is not a feature transform file"),
        ("mdef", writer.text_mdef().replace(b"5 n_tri", b"999999999 n_tri"), "promises 1000000003"),
        # Two million short lines, a line of millions of fields: neither is ever held as objects.
        *(("mdef", HEAD + body, "mdef") for body in (b"a\n" * 2_000_000, b"a " * 2_000_000, LINE * 20_000)),
    ],
)
def test_texts_and_transforms_that_do_not_fit(tmp_path, name, text, says):
    folder = writer.write_model(tmp_path, densities=3)
    (folder / name).write_bytes(text)
    assert says in refused(folder)


@each("name, n_bytes", [("feat.params", 1 << 17), ("mdef", 40 << 20), ("means", 1 << 30), ("sendump", 80 << 20)])
def test_files_larger_than_their_format_needs_are_refused_unread(tmp_path, name, n_bytes):
    with (writer.write_model(tmp_path, densities=3) / name).open("r+b") as file:
        file.truncate(n_bytes)
    assert "is not read" in refused(tmp_path)


LARGE = "-lifter " + "9" * 4000, "-nfilt " + "9" * 30000


@each("option", ["-wlen 1e304", "-alpha nan", "-lowerf -1e300", *LARGE])
def test_numbers_that_no_front_end_has_are_refused_in_few_words(tmp_path, option):
    folder = writer.write_model(tmp_path, densities=3)
    (folder / "feat.params").write_text(f"-feat 1s_c_d_dd\n-nfft 0\n{option}\n")
    assert len(refusal(r"\.$", open_model, assign(Config(), {"model_directory": str(folder)}))) < 600
