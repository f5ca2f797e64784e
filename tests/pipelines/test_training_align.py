"""Forced alignment against paths that were planted, and against all paths of a small transcript."""

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import soundfile

import assets
from pipelines.audio.word_errors import Count, count
from pipelines.config import Config
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import dictionary, nets
from pipelines.models.dictionary import Dictionary
from pipelines.models.nets import Layer
from pipelines.models.sphinx.definition import BEGIN, END, INTERNAL, SINGLE
from pipelines.run import playlist
from pipelines.run.playlist import Item
from pipelines.scoring import build_scorer
from pipelines.training import __main__ as command
from pipelines.training import evaluate, recipes
from pipelines.training.align import SILENT, Aligner, AlignmentError
from pipelines.training.corpus.data import Progress
from pipelines.training.recipes import as_dict
from profiler.spans import NullLane
from tests.each import each
from tests.pipelines.net_files import card, net, write

WORDS = Dictionary(
    {
        "the": (("DH", "AH"), ("DH", "IY")),
        "a": (("AH",),),
        "cat": (("K", "AE", "T"),),
        "odd": (("QQ",), ("AA", "D")),
        "alien": (("QQ",),),
    }
)


@pytest.fixture(scope="module")
def aligner(model):
    return Aligner(model.mdef, model.transitions, WORDS)


def chain(model, *units):
    """Senones, phones and words of three states per unit (phone, left, right, position, word)."""
    mdef, rows = model.mdef, []
    for phone, left, right, position, word in units:
        if position is None:
            ssid = mdef.ci_ssid(mdef.silence)
        else:
            ssid = mdef.triphone(mdef.phone(phone), mdef.phone(left), mdef.phone(right), position)
        rows += [(int(senone), mdef.phone(phone), word) for senone in mdef.sseq[ssid]]
    return np.array(rows, np.int32).T


SIL = ("SIL", "", "", None, SILENT)
PATHS = [
    # No silence at all: contexts reach across the words, and the second pronunciation was said.
    (
        ("the", "cat"),
        [
            ("DH", "SIL", "IY", BEGIN, 0),
            ("IY", "DH", "K", END, 0),
            ("K", "IY", "AE", BEGIN, 1),
            ("AE", "K", "T", INTERNAL, 1),
            ("T", "AE", "SIL", END, 1),
        ],
    ),
    # A word of one phone has both contexts across words; "odd" has one form in the model. Contexts end at silence.
    (
        ("cat", "a", "odd"),
        [
            SIL,
            ("K", "SIL", "AE", BEGIN, 0),
            ("AE", "K", "T", INTERNAL, 0),
            ("T", "AE", "AH", END, 0),
            ("AH", "T", "AA", SINGLE, 1),
            ("AA", "AH", "D", BEGIN, 2),
            ("D", "AA", "SIL", END, 2),
            SIL,
        ],
    ),
]


@each("words, units", PATHS)
def test_a_planted_path_is_found(model, aligner, words, units):
    senones, phones, numbers = chain(model, *units)
    rng = np.random.default_rng(0)
    stays = rng.integers(1, 4, len(senones))
    senones, phones, numbers = (np.repeat(row, stays) for row in (senones, phones, numbers))
    scores = rng.normal(-30, 2, (len(senones), model.n_senones)).astype(np.float32)
    scores[np.arange(len(senones)), senones] += 60
    found = aligner.align(scores, words)
    np.testing.assert_array_equal(found.senones, senones)
    np.testing.assert_array_equal(found.phones, phones)
    np.testing.assert_array_equal(found.words, numbers)


def test_every_unit_is_the_triphone_of_its_neighbours(model, aligner):
    """Whatever may come before and after a unit agrees with the contexts that its senones are for."""
    mdef = model.mdef
    line = aligner.line(["the", "a", "cat", "the"])
    states = line.states
    after = [set() for _ in line.phone]
    lefts = []
    for unit in range(len(line.phone)):
        former = states.before[states.first[unit] : states.first[unit + 1]]
        lefts.append({(int(line.phone[b]), int(line.word[b])) for b in former})
        for b in former:
            after[b].add((int(line.phone[unit]), int(line.word[unit])))
    checked = 0
    for unit, phone in enumerate(line.phone):
        if line.word[unit] == SILENT:
            continue
        outside = {(mdef.silence, SILENT)}
        before = lefts[unit] | (outside if states.begins[unit] else set())
        behind = after[unit] | (outside if states.ends[unit] else set())
        assert before
        assert behind
        for (left, word_before), (right, word_after) in itertools.product(before, behind):
            begins, ends = word_before != line.word[unit], word_after != line.word[unit]
            position = {(1, 1): SINGLE, (1, 0): BEGIN, (0, 1): END, (0, 0): INTERNAL}[begins, ends]
            senones = mdef.sseq[mdef.triphone(int(phone), left, right, position)]
            np.testing.assert_array_equal(states.senone[3 * unit : 3 * unit + 3], senones)
            checked += 1
    assert checked > 20


def test_the_best_of_all_paths_is_found(model, aligner):
    """Every sequence of units, and every way to stay in its states, tried one by one."""
    words, frames = ["a", "the"], 11
    line = aligner.line(words).states
    scores = np.random.default_rng(3).normal(-5, 4, (frames, model.n_senones)).astype(np.float32)
    before = [line.before[line.first[u] : line.first[u + 1]].tolist() for u in range(len(line.begins))]

    def sequences(unit):
        if line.begins[unit]:
            yield (unit,)
        for former in before[unit]:
            for sequence in sequences(former):
                yield (*sequence, unit)

    best = -np.inf
    for sequence in itertools.chain(*(sequences(int(u)) for u in np.flatnonzero(line.ends))):
        states = [3 * u + k for u in sequence for k in range(3)]
        for cuts in itertools.combinations(range(1, frames), len(states) - 1):
            edges = (0, *cuts, frames)
            total = 0.0
            for state, begin, end in zip(states, edges, edges[1:], strict=False):
                total += scores[begin:end, line.senone[state]].sum(dtype=float)
                total += (end - begin - 1) * line.stay[state] + line.leave[state]
            best = max(best, total)
    assert aligner.align(scores, words).score == pytest.approx(best, abs=1e-3)


def test_what_cannot_be_aligned(model, aligner):
    scores = np.zeros((15, model.n_senones), np.float32)
    for frames, words, why in (
        (14, ["the", "dog"], "no pronunciation of 'dog'"),
        (14, ["alien"], "no pronunciation of 'alien' for this model"),
        (14, ["the", "cat"], "14 frames are too few for the 2 words"),
        (0, ["a"], "too few"),
    ):
        with pytest.raises(AlignmentError, match=why):
            aligner.align(scores[:frames], words)
    assert (aligner.align(scores[:14], []).phones == model.mdef.silence).all()
    aligner.align(scores, ["the", "cat"])


@pytest.mark.slow
def test_speech_is_aligned_in_order_and_close_to_the_best_senones(model, bundled_speech):
    rows = (bundled_speech / "transcripts.tsv").read_text().splitlines()[1:]
    file, words = next(row for row in rows if "rms-harbor" in row).split("\t")
    samples, _ = soundfile.read(bundled_speech / file, dtype="float32")
    scores = build_scorer(Config(), model).score(Mfcc(model.feat_params).features(samples), 0, NullLane())
    found = Aligner(model.mdef, model.transitions, dictionary.default()).align(scores, words.split())
    spoken = found.words[found.words != SILENT]
    assert (np.diff(spoken) >= 0).all()
    assert set(spoken.tolist()) == set(range(len(words.split())))
    # flite speaks a vowel or so every 100 ms, and hardly pauses.
    assert 0.02 < (found.words == SILENT).mean() < 0.2
    assert np.bincount(spoken).min() >= 3
    # Wrong words fit far worse.
    chosen = scores[np.arange(len(scores)), found.senones]
    assert (scores.max(1) - chosen).mean() < 5
    backwards = Aligner(model.mdef, model.transitions, dictionary.default()).align(scores, words.split()[::-1])
    assert found.score - backwards.score > 5 * len(scores)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The requested configurations; mixtures recognise all words, and nets all but one."""
    seen: list[Config] = []

    def hears(config: Config, items: Sequence[Item], name: str, progress: Progress) -> Count:
        seen.append(config)
        return count("one two three", "one two three" if config.model == "ptm" else "one two")

    monkeypatch.setattr(evaluate, "_decoded", hears)
    monkeypatch.setattr(playlist, "build", lambda audio, transcripts: playlist.Playlist([]))
    return seen


def test_settings_are_for_the_nets_and_the_card_keeps_every_count(decoded, tmp_path, capsys):
    path = write(tmp_path, net(card(Layer(8), about={"date": "today", "recipe": {"frames": 7}})))
    arguments = ["evaluate", str(path), "--audio", "somewhere"]
    assert command.main([*arguments, "--note", "plain"]) == 0
    assert command.main([*arguments, "--note", "skipping", "--set", "frames.skip=2"]) == 0
    assert [config.model for config in decoded] == ["ptm", "dnn"] * 2
    assert [config.frames.skip for config in decoded] == [1, 1, 1, 2]
    assert decoded[1].dnn.net == str(path)
    assert f"{path}: 1 error in 3 words (0.333)" in capsys.readouterr().out
    both = {"mixtures": [0, 3], str(path): [1, 3]}
    about = nets.load(path).card.about
    assert about == {"date": "today", "recipe": {"frames": 7}, "word_errors": {"plain": both, "skipping": both}}
    assert command.main([*arguments, "--set", "frames.skip"]) == 2
    assert "must be key=value" in capsys.readouterr().err
    assert command.main([*arguments, "--json"]) == 0
    taught, made = json.loads(capsys.readouterr().out)["nets"]
    assert taught == {"net": "mixtures", "mb": None, "frames": None, "errors": 0, "words": 3, "wer": 0.0}
    assert (made["net"], made["frames"], made["errors"]) == (str(path), 7, 1)
    assert made["mb"] == path.stat().st_size / 1e6


LIMIT_BYTES = 35_000_000
SENONES, FEATURES = 5126, 39
SETS = {"human": 63, "200 test sentences": 2682}  # What each is evaluated on, and how many words that has


@each("name", recipes.RECIPES)
def test_a_card_says_how_its_net_was_made_and_how_it_does(name):
    assert set(nets.shipped()) == set(recipes.RECIPES)
    assert sum(file.stat().st_size for file in assets.path("nets").iterdir()) <= LIMIT_BYTES
    net = nets.load(nets.find(name), SENONES, FEATURES)
    about, recipe = net.card.about, recipes.find(name)
    then: dict[str, Any] = about["recipe"]
    # What recipes did not have yet when it was made was off then.
    assert {key: value for key, value in as_dict(recipe).items() if key in then} == then
    assert not any(value for key, value in as_dict(recipe).items() if key not in then)
    assert about["command"] == f"python -m pipelines.training train {name}"
    assert about["frames"] >= recipe.frames
    assert about["hours"] > 0
    assert about["parameters"] == net.card.n_parameters
    assert about["data"]["human"][-1] == "cats.flac"  # held out
    assert about["date"].startswith("2026-")
    for where, words in SETS.items():
        errors = about["word_errors"][where]
        assert errors["mixtures"][1] == errors[name][1] == words
    log = nets.find(name).with_suffix(".log.jsonl").read_text(encoding="utf-8").splitlines()
    reports = [json.loads(line) for line in log]
    assert reports[-1]["held_out"] == about["divergence_held_out"]
    assert reports[-1]["loss"] < reports[0]["loss"]
    if kept := recipe.kept or recipe.kept_blocks:
        weights = [values for key, values in net.tensors.items() if key.endswith("weight")]
        share = sum(map(np.count_nonzero, weights)) / sum(values.size for values in weights)
        assert share == pytest.approx(kept, abs=0.005)
