"""Language models: files against pocketsphinx' own reading and against damage; the algebra of backing off."""

import bz2
import gzip

import numpy as np
import pocketsphinx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language_models import arpa_text, distribution, random_model, write_arpa

from pipelines.models.language import arpa, lm_bin, ngram
from pipelines.models.language.ngram import LanguageModelError
from pipelines.search.graph.recipe import default_language_model
from pipelines.search.graph.sources import read_language_model
from profiler.plain import printable
from tests.each import each
from tests.pipelines.refusing import flipped, refusal, refused

UNIT = np.log(1.0001)  # of pocketsphinx' logarithms


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A trigram model, its ARPA file, and its .lm.bin as pocketsphinx packs it."""
    model, folder = random_model(7, 9, 3, closed=True), tmp_path_factory.mktemp("lm")
    write_arpa(model, folder / "small.arpa")
    in_pocketsphinx(folder / "small.arpa").write(str(folder / "small.lm.bin"))
    return model, folder / "small.arpa", folder / "small.lm.bin"


def in_pocketsphinx(path):
    return pocketsphinx.NGramModel(pocketsphinx.Config(loglevel="FATAL"), pocketsphinx.LogMath(), str(path))


def same(a, b, tolerance):
    assert a.words == b.words
    for k in range(a.order):
        np.testing.assert_array_equal(a.ids[k], b.ids[k])
        np.testing.assert_allclose(a.log_prob[k], b.log_prob[k], rtol=tolerance, atol=tolerance)
    for x, y in zip(a.log_backoff, b.log_backoff, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def test_lm_bin_equals_pocketsphinx():
    path = default_language_model()
    peer, ours, rng = in_pocketsphinx(path), lm_bin.read(path), np.random.default_rng(1)
    worst = 0.0
    for k in (1, 2, 3):
        listed = ours.ids[k - 1][rng.integers(0, ours.counts[k - 1], 300)]
        mixed = rng.integers(0, len(ours.words), (100, k)).astype(np.int32)
        grams = np.concatenate([listed, mixed])
        grams = grams[~(grams == ours.index()["<s>"]).any(axis=1)]
        for gram, value in zip(grams, ours.score(grams), strict=True):
            theirs = peer.prob([ours.words[i] for i in gram[::-1]]) * UNIT
            worst = max(worst, abs(theirs - value))
    # It adds whole units, three at most.
    assert worst < 4 * UNIT


def test_round_trips(small, tmp_path):
    model, plain, packed = small
    same(lm_bin.read(packed), model, 2e-4)
    short = lm_bin.read(packed, max_order=2)
    assert short.order == 2
    np.testing.assert_array_equal(short.ids[1], model.ids[1])
    path, text = tmp_path / "m.arpa", plain.read_bytes()
    for content in (text, b"\xef\xbb\xbf" + text, gzip.compress(text), bz2.compress(text)):
        path.write_bytes(content)
        same(arpa.read(path), model, 3e-6)
    same(read_language_model(path, 3), model, 3e-6)
    assert arpa.read(path, max_order=1).order == 1


def test_every_truncation_is_refused(small, tmp_path):
    _, _, path = small
    data = path.read_bytes()
    cut = tmp_path / "cut.lm.bin"
    near_the_end = range(len(data) - 900, len(data), 7)
    for length in [0, 1, 18, 19, 20, 25, 31, 40, 70_000, *near_the_end]:
        cut.write_bytes(data[:length])
        with pytest.raises(LanguageModelError):
            lm_bin.read(cut)
    cut.write_bytes(b"\x7fELF" + bytes(range(256)))
    refusal("Trie Language Model", lm_bin.read, cut)


@each("bits", [0x7FA00000, 0x7FC00000, 0xFF800000])
def test_a_probability_that_is_no_number_is_refused(small, tmp_path, bits):
    """A signalling NaN, which warns when it is converted, a quiet one, minus infinity."""
    _, _, path = small
    content = path.read_bytes()
    # The first that is stored as this number is the first unigram's: see the table of unigrams in `lm_bin`.
    first = np.float32(lm_bin.read(path).log_prob[0][0] / np.log(lm_bin.LOG_BASE)).tobytes()
    damaged = tmp_path / "nan.lm.bin"
    damaged.write_bytes(content.replace(first, np.uint32(bits).tobytes(), 1))
    assert damaged.read_bytes() != content
    refusal("not a finite number", lm_bin.read, damaged)


def test_flipped_bytes_never_crash(small, tmp_path):
    content, rng, damaged = small[2].read_bytes(), np.random.default_rng(3), tmp_path / "flipped.lm.bin"
    first, after = 36, 36 + 3 * 4 * 65536  # of the tables of values
    for _ in range(60):
        broken = flipped(content[:first] + content[after:], rng)
        damaged.write_bytes(broken[:first] + content[first:after] + broken[first:])
        sentence = refused(lm_bin.read, damaged)
        assert sentence is None or sentence.endswith(".")


UNIGRAMS = "\\data\\\nngram 1=3\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 a\n"
BIGRAMS = UNIGRAMS.replace("ngram 1=3\n", "ngram 1=3\nngram 2=1\n") + "\n\\2-grams:\n"


@each(
    "text, message",
    [
        ("\\data\\\nngram 1=99999999999\n\n\\1-grams:\n", "line 2: 99999999999 1-grams are announced"),
        (UNIGRAMS.replace("1=3", "1=4") + "\\end\\\n", r"line 8: \\end\\ follows 3 1-grams where 4 are"),
        (UNIGRAMS.replace("1=3", "1=2") + "\\end\\\n", "line 7: this is one more than the 2 1-grams"),
        (UNIGRAMS.replace("-1 a", "x a"), "line 7: 'x a' is no 1-gram"),
        (UNIGRAMS, r"not whole: it lacks \\end\\ after its 3 1-grams"),
        (UNIGRAMS.replace("1=3", "1=4"), "not whole: it ends after 3 of its 4 1-grams"),
        (UNIGRAMS + "\\2-grams:\n", r"line 8: '\\2-grams:' stands where \\end\\ should"),
        (UNIGRAMS.replace("-1 a", "nan a"), "line 7: the 1-gram 'a' has a value that is not a finite"),
        (UNIGRAMS.replace("-1 a", "-1 a inf"), "line 7: the 1-gram 'a' has a value that is not a finite"),
        (UNIGRAMS.replace("<s>", "<S>") + "\\end\\\n", "bad.arpa lacks the sentence mark <s>; it has <S>"),
        (BIGRAMS + "-1 a b\n", "line 11: the 2-gram 'a b' has the word 'b', which is none of the 1-grams"),
        (BIGRAMS + "-1 a\n", "line 11: '-1 a' is no 2-gram"),
        ("x" * 5000, "line 1: this is no ARPA file: the line is over"),
        ("\\data\\\nngram 1=\u00b2\n\n\\1-grams:\n", "line 2: 'ngram 1=\u00b2' stands where ngram 1=… should"),
        ("\\data\\\nngram 1=3\nngram 3=3\n", r"line 3: 'ngram 3=3' stands where \\1-grams: or ngram 2=…"),
        ("\\data\\\n" + "".join(f"ngram {k}=3\n" for k in range(1, 12)), "line 12: n-grams of more than 10"),
        ("\\data\\\nngram 1=1\n\n\\1-grams:\n\x1b[31m" + "y" * 900 + "\n", "is no 1-gram"),
        ("\n" * 20_000, "lines of it are blank"),
        ("hello\n" * 20_000, "no .data. block"),
        ("\x11\0\0\0Darpa Trigram LM\0", "is a Sphinx DMP file: convert it with sphinx_lm_convert"),
        ("mmap lm http://kheafield.com/code format version 5\n\0", "a binary file of KenLM"),
        ("version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        ("\udcff\udcfe\\\0d\0a\0t\0a\0", "is a text in UTF-16: save it as UTF-8"),
        ("\x7fELF\0\0\n", "which is a text, but holds binary data"),
        ("\\data\\\nngram 1=3\n\n\\1-grams:\n-1 \udce9t\udce9\n", "line 5: the text is not UTF-8"),
    ],
)
def test_bad_arpa_is_refused_in_one_sentence(tmp_path, text, message):
    path = tmp_path / "bad.arpa"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    sentence = refusal(message, arpa.read, path)
    assert "bad.arpa" in sentence
    assert len(sentence) < 400
    assert printable(sentence) == sentence


PAIRS = b"\\data\\\nngram 1=2\nngram 2=40000000\n\\1-grams:\n-1 <s>\n-1 </s>\n\\2-grams:\n"
PACKED = [
    (b"\\data\\\nngram 1=2\n\n\\1-grams:\n" + b"\n" * 20_000_000, "are blank"),
    (b"hello\n" * 4_000_000, "no .data. block"),
    (b"\\data\\\nngram 1=40000000\n\\1-grams:\n" + b"-1 a\n" * 4_500_000, "more than 16 times its size"),
    (PAIRS + b"-1 <s> </s>\n" * 2_000_000, "more than 16 times its size"),
]


@pytest.mark.slow
@each("text, message", PACKED)
def test_what_unpacks_to_little_is_refused_before_it_is_read(tmp_path, monkeypatch, text, message):
    unpacked = 0
    read = gzip.GzipFile.readline

    def counted(file, size=-1):
        nonlocal unpacked
        line = read(file, size)
        unpacked += len(line)
        return line

    monkeypatch.setattr(gzip.GzipFile, "readline", counted)
    (tmp_path / "m.arpa.gz").write_bytes(gzip.compress(text, 1))
    refusal(message, arpa.read, tmp_path / "m.arpa.gz")
    assert unpacked < len(text) / 2


def test_a_vocabulary_too_large_for_its_order_is_refused():
    words = ["<s>", "</s>", *map(str, range(2_100_000))]
    none = np.zeros(0)
    ids = [np.arange(len(words), dtype=np.int32)[:, None], *(np.zeros((0, k), np.int32) for k in (2, 3))]
    probs = [np.full(len(words), -15.0), none, none]
    refusal("too many for its order of 3", ngram.make, words, ids, probs, [np.zeros(len(words)), none])


def test_damaged_packing_is_refused(small, tmp_path):
    text = small[1].read_bytes()
    path = tmp_path / "m.arpa.gz"
    for kind, packed in (("gzip", gzip.compress(text)), ("bzip2", bz2.compress(text))):
        for damaged in (packed[: len(packed) // 2], packed[:200] + b"\xff" * 40 + packed[240:]):
            path.write_bytes(damaged)
            refusal(f"m.arpa.gz is a damaged {kind} file", arpa.read, path)


def evaluated(levels, gram):
    """log10 P(last word | the others), by the definition of backing off."""
    if gram in levels[len(gram) - 1]:
        return levels[len(gram) - 1][gram][0]
    _, weight = levels[len(gram) - 2].get(gram[:-1], (0.0, 0.0))
    return weight + evaluated(levels, gram[1:])


LOG10 = st.floats(-4.0, 0.0).map(lambda value: round(value, 6))


@st.composite
def pruned_models(draw):
    """Any n-grams of any order up to 5, whether or not their beginnings and ends are listed, in any order."""
    some = st.lists(st.sampled_from(["a", "b", "c", "é", "a\xa0b", "\u3000c"]), min_size=1, unique=True)
    words = ["<s>", "</s>", *draw(some)]
    orders = draw(st.integers(1, 5))
    chosen = [draw(st.permutations([(w,) for w in words]))]
    for k in range(2, orders + 1):
        grams = st.tuples(*[st.sampled_from(words)] * k)
        chosen.append(draw(st.lists(grams, max_size=12, unique=True)))
    # The last order has no back-off weights; a file may write them all the same.
    return [
        {gram: (draw(LOG10), draw(LOG10) if k < orders else 0.0) for gram in grams} for k, grams in enumerate(chosen, 1)
    ]


@settings(max_examples=20, deadline=None)
@given(pruned_models(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_any_arpa_file_scores_as_backing_off_is_defined(tmp_path_factory, levels, order, draw):
    path = tmp_path_factory.getbasetemp() / "pruned.arpa"
    path.write_text(arpa_text(levels), encoding="utf-8")
    model = arpa.read(path, order)
    assert model.order == min(order, len(levels))
    assert bool(model.notes) == (len(levels) > 3)
    for k in range(1, model.order + 1):
        for _ in range(20):
            gram = tuple(draw.choice(model.words) for _ in range(k))
            (score,) = model.score(np.array([[model.index()[w] for w in gram]], np.int32))
            assert score / np.log(10) == pytest.approx(evaluated(levels[: model.order], gram), abs=1e-9)
    for k in range(2, model.order):
        assert (model.find(model.ids[k][:, :-1]) >= 0).all()
    # Whatever it holds, a graph is made of what is a distribution.
    small = ngram.restrict(model, [w for w in model.words if w[0] != "<"])
    for level in small.log_prob:
        assert np.isfinite(level).all()


def test_longer_n_grams_than_any_setting_uses_are_said(tmp_path):
    grams = {("<s>",): (-1.0, -0.5), ("</s>",): (-1.0, 0.0), ("a",): (-0.5, -0.25)}
    longer = [{(*["a"] * k,): (-0.1 * k, 0.0)} for k in range(2, 6)]
    path, packed = tmp_path / "five.arpa", tmp_path / "five.lm.bin"
    path.write_text(arpa_text([grams, *longer]))
    model = read_language_model(path, 2)
    assert model.counts == (3, 1)
    (note,) = model.notes
    assert note.startswith("n-grams of up to 2 words are used of the language model, which lists them up to 5")
    whole = read_language_model(path, 3)
    assert whole.counts == (3, 1, 1)
    in_pocketsphinx(path).write(str(packed))
    assert read_language_model(packed, 3).notes == whole.notes
    same(read_language_model(packed, 3), whole, 2e-4)


def test_doubled_n_grams_and_probabilities_above_1_are_read_and_said(tmp_path):
    path = tmp_path / "odd.arpa"
    path.write_text(
        "\\data\\\nngram 1=5\nngram 2=4\n\n\\1-grams:\n-1 <s> 0\n-1 </s> 0\n0.05 a -0.1\n-0.9 b 0\n-0.3 a 0\n"
        "\n\\2-grams:\n-0.5 b a\n-0.7 a b\n-0.2 b a\n0.3 a a\n\n\\end\\\n"
    )
    model = arpa.read(path)
    assert model.counts == (4, 3)
    a, b = model.index()["a"], model.index()["b"]
    score = model.score(np.array([[b, a], [a, b], [a, a]], np.int32)) / np.log(10)
    np.testing.assert_allclose(score, [-0.5, -0.7, 0.0])
    assert model.log_prob[0][a] == 0.0
    assert [note.rpartition(": ")[2] for note in model.notes] == ["'a'", "'a'", "'b a'", "'a a'"]
    assert model.notes[0].startswith("1 1-gram of the language model listed again, where the first")
    assert model.notes[1].startswith("1 1-gram of the language model with a probability above 1, taken")


MODELS = st.builds(
    random_model,
    seed=st.integers(0, 10_000),
    n_words=st.integers(2, 7),
    order=st.integers(1, 3),
    density=st.floats(0.1, 1.0),
)


def histories(model):
    """Every history that the model distinguishes, as lists of ids."""
    result = [[]]
    for k in range(1, model.order):
        result += [g.tolist() for g in model.ids[k - 1] if g[-1] != 1]
    return result


@settings(max_examples=60, deadline=None)
@given(MODELS)
def test_every_history_sums_to_one(model):
    for history in histories(model):
        # Words that share less than this mass may come on top of explicit ones that already sum to 1.
        assert distribution(model, history).sum() == pytest.approx(1.0, abs=ngram.MIN_BACKOFF_MASS)


@settings(max_examples=60, deadline=None)
@given(MODELS, st.data())
def test_restriction_conditions_on_the_vocabulary(model, data):
    words = [w for w in model.words if w.startswith("w")]
    kept = data.draw(st.lists(st.sampled_from(words), min_size=1, unique=True))
    small = ngram.restrict(model, kept)
    assert set(small.words) == {"<s>", "</s>", *kept}
    for history in histories(small):
        before = distribution(model, [model.words.index(small.words[h]) for h in history])
        inside = before[[model.words.index(w) for w in small.words]]
        np.testing.assert_allclose(distribution(small, history), inside / inside.sum(), rtol=1e-6, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(MODELS, st.integers(0, 12), st.integers(0, 12))
def test_pruned_models_keep_the_best_and_sum_to_one(model, bigrams, trigrams):
    pruned = ngram.prune(model, (bigrams, trigrams))
    for history in histories(pruned):
        assert distribution(pruned, history).sum() == pytest.approx(1.0, abs=1e-9)
    if model.order == 2:
        assert pruned.counts[1] == min(bigrams, model.counts[1])
    if model.order == 3:
        assert pruned.counts[2] == min(trigrams, model.counts[2])
        # A trigram's history must be listed, for it holds the back-off weight.
        assert (pruned.find(pruned.ids[2][:, :-1]) >= 0).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_worth_is_the_relative_entropy_of_removal(seed):
    model = random_model(seed, 5, 2)
    worth = ngram.removal_entropy(model, 2)
    errors = []
    for row, (history, _) in enumerate(model.ids[1]):
        kept = np.arange(len(worth)) != row
        ids, probs = (model.ids[0], model.ids[1][kept]), (model.log_prob[0], model.log_prob[1][kept])
        without = ngram.renormalise(ngram.make(model.words, ids, probs, model.log_backoff))
        p, q = distribution(model, [history]), distribution(without, [history])
        some = p > 0
        weight = np.exp(model.log_prob[0][1 if history == 0 else history])
        wanted = weight * (p[some] * np.log(p[some] / q[some])).sum()
        errors.append(abs(worth[row] - wanted))
        assert worth[row] == pytest.approx(wanted, rel=1e-4, abs=5e-4)
    # Back-off weights are rounded, and of a history that lists every word nothing is left to back off with:
    # a few are off by that much.
    assert not errors or np.median(errors) < 1e-5


def test_sums_above_one_are_scaled_down():
    """As what 16-bit tables make of a nearly full history."""
    ids = np.array([[0], [1], [2]], "i4"), np.array([[2, 1], [2, 2]], "i4")
    probs = np.log([1e-40, 0.5, 0.5]), np.log([0.6, 0.402])
    fixed = ngram.renormalise(ngram.make(["<s>", "</s>", "a"], ids, probs, (np.zeros(3),)))
    assert distribution(fixed, [2]).sum() == pytest.approx(1.0, abs=1e-5)


def test_most_probable_is_deterministic_and_ordered():
    model = random_model(3, 6, 1)
    words = ngram.most_probable(model, [*model.words[2:], "unheard"], 4)
    prob = dict(zip(model.words, model.log_prob[0], strict=True))
    assert words == sorted(model.words[2:], key=lambda w: -prob[w])[:4]


@each("words, message", [(["<s>", "</s>", "a", "a"], "a word twice"), (["<s>", "a"], "sentence mark </s>")])
def test_malformed_models_are_refused(words, message):
    ids = np.arange(len(words), dtype="i4")[:, None]
    refusal(message, ngram.make, words, [ids], [np.full(len(words), -1.0)], [])
