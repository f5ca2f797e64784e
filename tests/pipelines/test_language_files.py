"""Language model files: against pocketsphinx' own reading, and against damage."""

import gzip
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language_models import random_model, write_lm_bin

from pipelines.models.language import arpa, lm_bin, ngram
from pipelines.models.language.ngram import LanguageModelError
from pipelines.search.graph.recipe import default_language_model
from pipelines.search.graph.sources import read_language_model
from profiler.plain import printable


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A trigram model and its .lm.bin, which announces three bigrams more than it holds."""
    model = random_model(7, 9, 3, closed=True)
    path = tmp_path_factory.mktemp("lm") / "small.lm.bin"
    write_lm_bin(model, path, extra_bigrams=3)
    return model, path


def same(a, b, tolerance):
    assert a.words == b.words
    for k in range(a.order):
        np.testing.assert_array_equal(a.ids[k], b.ids[k])
        np.testing.assert_allclose(a.log_prob[k], b.log_prob[k], rtol=tolerance, atol=tolerance)
    for x, y in zip(a.log_backoff, b.log_backoff, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def test_lm_bin_round_trip(small):
    model, path = small
    same(lm_bin.read(path), model, 1e-6)
    short = lm_bin.read(path, max_order=2)
    assert short.order == 2
    np.testing.assert_array_equal(short.ids[1], model.ids[1])


def test_lm_bin_equals_pocketsphinx():
    import pocketsphinx

    path = default_language_model()
    logmath = pocketsphinx.LogMath()
    peer = pocketsphinx.NGramModel(pocketsphinx.Config(loglevel="FATAL"), logmath, str(path))
    ours = lm_bin.read(path)
    rng = np.random.default_rng(1)
    base = np.log(logmath.base if hasattr(logmath, "base") else 1.0001)
    worst = 0.0
    for k in (1, 2, 3):
        listed = ours.ids[k - 1][rng.integers(0, ours.counts[k - 1], 300)]
        mixed = rng.integers(0, len(ours.words), listed.shape).astype(np.int32)
        grams = np.concatenate([listed, mixed[:100]])
        grams = grams[~(grams == ours.index()["<s>"]).any(axis=1)]
        score = ours.score(grams)
        for gram, value in zip(grams, score, strict=True):
            theirs = peer.prob([ours.words[i] for i in gram[::-1]]) * base
            worst = max(worst, abs(theirs - value))
    # pocketsphinx adds whole units of its logarithm, three at most.
    assert worst < 4 * base


def test_arpa_round_trip(small, tmp_path):
    model, _ = small
    arpa.write(model, tmp_path / "m.arpa")
    same(arpa.read(tmp_path / "m.arpa"), model, 3e-6)
    (tmp_path / "m.arpa.gz").write_bytes(gzip.compress((tmp_path / "m.arpa").read_bytes()))
    same(arpa.read(tmp_path / "m.arpa.gz"), model, 3e-6)
    assert arpa.read(tmp_path / "m.arpa", max_order=1).order == 1


def test_arpa_is_read_by_pocketsphinx(small, tmp_path):
    import pocketsphinx

    model, _ = small
    arpa.write(model, tmp_path / "m.arpa")
    logmath = pocketsphinx.LogMath()
    config = pocketsphinx.Config(loglevel="FATAL")
    peer = pocketsphinx.NGramModel(config, logmath, str(tmp_path / "m.arpa"))
    base = np.log(1.0001)
    for gram in model.ids[2][:50]:
        value = float(model.score(gram[None])[0])
        theirs = peer.prob([model.words[i] for i in gram[::-1]]) * base
        assert theirs == pytest.approx(value, abs=5 * base)


def test_every_truncation_is_refused(small, tmp_path):
    _, path = small
    data = path.read_bytes()
    cut = tmp_path / "cut.lm.bin"
    near_the_end = range(len(data) - 900, len(data), 7)
    for length in [0, 1, 18, 19, 20, 25, 31, 40, 70_000, *near_the_end]:
        cut.write_bytes(data[:length])
        with pytest.raises(LanguageModelError):
            lm_bin.read(cut)


@pytest.mark.parametrize("bits", [0x7FA00000, 0x7FC00000, 0xFF800000])
def test_a_probability_that_is_no_number_is_refused(small, tmp_path, bits):
    """A signalling NaN, which warns when it is converted, a quiet one, minus infinity."""
    _, path = small
    content = path.read_bytes()
    # The first that is stored as this number is the first unigram's: see the table of unigrams in `lm_bin`.
    first = np.float32(lm_bin.read(path).log_prob[0][0] / np.log(lm_bin.LOG_BASE)).tobytes()
    damaged = tmp_path / "nan.lm.bin"
    damaged.write_bytes(content.replace(first, np.uint32(bits).tobytes(), 1))
    assert damaged.read_bytes() != content
    with pytest.raises(LanguageModelError, match="not a finite number"):
        lm_bin.read(damaged)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_flipped_bytes_never_crash(small, tmp_path_factory, data):
    _, path = small
    content = bytearray(path.read_bytes())
    tables = range(36, 36 + 3 * 4 * 65536)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - len(tables) - 1))
        at = at if at < tables.start else at + len(tables)
        content[at] ^= data.draw(st.integers(1, 255))
    damaged = tmp_path_factory.getbasetemp() / "flipped.lm.bin"
    damaged.write_bytes(content)
    try:
        problem = ""
        assert lm_bin.read(damaged).order <= 3
    except LanguageModelError as error:
        problem = str(error)
    assert "\n" not in problem
    assert not problem or problem.endswith(".")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", "no .data. block"),
        ("\\data\\\nngram 1=99999999999\n\n\\1-grams:\n", "announces order 1"),
        ("\\data\\\nngram 1=3\n\n\\1-grams:\n-1 <s>\n-1 </s>\n\\end\\\n", "announces 3 1-grams"),
        ("\\data\\\nngram 1=2\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 a\n\\end\\\n", "more than the 2"),
        ("\\data\\\nngram 1=2\n\n\\1-grams:\n-1 <s>\nx </s>\n\\end\\\n", "'x </s>' is not"),
        ("\\data\\\nngram 1=2\n\n\\1-grams:\n-1 <s>\n-1 </s>\n", "not whole"),
        ("\\data\\\nngram 1=2\n\n\\1-grams:\n-1 <s>\n-1 </s>\n\\2-grams:\n", "stands where"),
        ("\\data\\\nngram 1=2\n\n\\1-grams:\n-1 <s>\nnan </s>\n\\end\\\n", "not finite"),
        ("x" * 5000, "a line is over"),
        ("\\data\\\nngram 1=\u00b2\n\n\\1-grams:\n", "no .data. block"),
        ("\\data\\\nngram 1=" + "9" * 4001 + "\n", "announces order 1 and 999"),
        (
            "\\data\\\nngram 1=3\n\n\\1-grams:\n-1 a\n-1 a\n-1 b\n\\end\\\n",
            "lists the word 'a' twice",
        ),
        ("\\data\\\nngram 1=1\n\n\\1-grams:\n\x1b[31m" + "y" * 900 + "\n", "is not a probability"),
        ("\n" * 20_000, "lines of it are blank"),
        ("hello\n" * 20_000, "no .data. block"),
    ],
)
def test_bad_arpa_is_refused_in_one_sentence(tmp_path, text, message):
    path = tmp_path / "bad.arpa"
    path.write_text(text)
    with pytest.raises(LanguageModelError, match=message) as caught:
        arpa.read(path)
    assert len(str(caught.value)) < 400
    assert printable(str(caught.value)) == str(caught.value)


PACKED = [
    ("blank", b"\\data\\\nngram 1=2\n\n\\1-grams:\n" + b"\n" * 40_000_000, "are blank"),
    ("before", b"hello\n" * 8_000_000, "no .data. block"),
    ("word", b"\\data\\\nngram 1=40000000\n\\1-grams:\n" + b"-1 a\n" * 9_000_000, "word 'a' twice"),
    (
        "pair",
        b"\\data\\\nngram 1=2\nngram 2=40000000\n\\1-grams:\n-1 <s>\n-1 </s>\n\\2-grams:\n"
        + b"-1 <s> </s>\n" * 4_000_000,
        "unpacks to more than 16 times its size",
    ),
]


@pytest.mark.parametrize(("name", "text", "message"), PACKED, ids=[case[0] for case in PACKED])
def test_what_unpacks_to_little_is_refused_before_it_is_read(
    tmp_path, monkeypatch, name, text, message
):
    unpacked = 0
    read = gzip.GzipFile.readline

    def counted(file, size=-1):
        nonlocal unpacked
        line = read(file, size)
        unpacked += len(line)
        return line

    monkeypatch.setattr(gzip.GzipFile, "readline", counted)
    (tmp_path / "m.arpa.gz").write_bytes(gzip.compress(text, 1))
    with pytest.raises(LanguageModelError, match=message):
        arpa.read(tmp_path / "m.arpa.gz")
    assert unpacked < len(text) / 2


def test_a_vocabulary_too_large_for_its_order_is_refused():
    words = ["<s>", "</s>", *map(str, range(2_100_000))]
    none = np.zeros(0)
    ids = [
        np.arange(len(words), dtype=np.int32)[:, None],
        *(np.zeros((0, k), np.int32) for k in (2, 3)),
    ]
    probs = [np.full(len(words), -15.0), none, none]
    with pytest.raises(LanguageModelError, match="too many for its order of 3"):
        ngram.make(words, ids, probs, [np.zeros(len(words)), none])


def test_damaged_gzip_is_refused(small, tmp_path):
    model, _ = small
    arpa.write(model, tmp_path / "m.arpa")
    packed = gzip.compress((tmp_path / "m.arpa").read_bytes())
    path = tmp_path / "m.arpa.gz"
    for damaged in (packed[: len(packed) // 2], packed[:200] + b"\xff" * 40 + packed[240:]):
        path.write_bytes(damaged)
        with pytest.raises(LanguageModelError):
            arpa.read(path)


def test_missing_and_foreign_files(tmp_path):
    for reader in (arpa.read, lm_bin.read):
        with pytest.raises(LanguageModelError, match="cannot be read"):
            reader(tmp_path / "nothing")
    (tmp_path / "foreign").write_bytes(b"\x7fELF" + bytes(range(256)))
    with pytest.raises(LanguageModelError, match="Trie Language Model"):
        lm_bin.read(tmp_path / "foreign")
    with pytest.raises(LanguageModelError):
        arpa.read(tmp_path / "foreign")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_never_ends_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for reader in (arpa.read, lm_bin.read, read_language_model):
        for path in ("/dev/zero", tmp_path / "pipe"):
            with pytest.raises(LanguageModelError, match="pipe or a device"):
                reader(path, 2)
        with pytest.raises(LanguageModelError, match="folder"):
            reader(tmp_path, 2)
