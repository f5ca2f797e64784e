"""Training really teaches, goes on where it was stopped, and never sees what is tested on."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from whole_runs import never, quiet

from pipelines.frontend.mfcc import Mfcc, mel_filters
from pipelines.frontend.parameters import FeatureParameters
from pipelines.models import nets, sphinx
from pipelines.models.nets import Card
from pipelines.training import recipes
from pipelines.training.checkpoint import export
from pipelines.training.corpus import data, labels
from pipelines.training.corpus.data import Change, DataRecipe, Frames, Pool, order, sentences
from pipelines.training.module import card_for, divergence
from pipelines.training.recipes import NetRecipe
from pipelines.training.train import Trainer, started
from profiler.arrays import Array
from tests.pipelines.net_files import forward, net
from tests.pipelines.refusing import refusal

SENONES = 12
RECIPE = NetRecipe("tiny", "", (24,), 8, left=1, right=1, frames=10_000, batch=64, rate=1e-2, heads=2)


class Linear:
    """A teacher that looks at six features of one frame: its scores are a fixed matrix times these."""

    def scores(self, pool: Pool, at: Array) -> torch.Tensor:
        matrix = np.random.default_rng(7).normal(0, 2.0, (6, SENONES)).astype(np.float32)
        return torch.from_numpy(pool.clean(at)[:, 0, :6] @ matrix)


def frames(seed: int, utterances: int = 12) -> Frames:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(30, 90, utterances)
    values = rng.normal(0, 1, (int(lengths.sum()), 39)).astype(np.float16)
    return Frames(values, values, np.cumsum(lengths).astype(np.int32))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for i in range(3):
        data.write(frames(i), folder / f"shard-{i:04d}.safetensors")
    data.write(frames(99), folder / "held-out.safetensors")
    return folder


def card_of(shards: Path, recipe: NetRecipe) -> Card:
    heard = data.read(shards / "held-out.safetensors").heard
    return card_for(heard, (1, 1), recipe.widths, recipe.bottleneck, SENONES, recipe.heads)


def trainer(shards: Path, folder: Path, recipe: NetRecipe = RECIPE) -> Trainer:
    torch.set_num_threads(1)
    return Trainer(recipe, card_of(shards, recipe), Linear(), shards, folder, torch.device("cpu"))


def after(steps: int) -> Callable[[], bool]:
    """Stops after a number of calls."""
    answers = iter([False] * steps)
    return lambda: next(answers, True)


def test_training_teaches(shards, tmp_path):
    t = trainer(shards, tmp_path / "net")
    before, same_before = t.validate()
    t.run(never, quiet)
    apart, same = t.validate()
    assert t.finished
    assert 0 < t.place.seconds < 600
    assert apart < before / 2
    assert same > max(4 * same_before, 0.4)
    refusal("There is no recipe 'huge'", recipes.find, "huge")


def test_an_interrupted_training_is_the_same_as_one_in_one_go(shards, tmp_path):
    whole = trainer(shards, tmp_path / "whole")
    whole.run(never, quiet)
    for steps in (1, 60, 5, 100_000):  # also beyond the end of an epoch
        part = trainer(shards, tmp_path / "parts")
        part.run(after(steps), quiet)
    assert part.finished
    assert part.place.step == whole.place.step
    for name, values in whole.module.tensors().items():
        np.testing.assert_array_equal(part.module.tensors()[name], values)


def test_shards_that_come_later_are_taken_in_the_next_epoch(shards, tmp_path):
    late = shards / "shard-0002.safetensors"
    late.rename(shards / "later")
    t = trainer(shards, tmp_path / "net")
    t.run(after(3), quiet)
    (shards / "later").rename(late)
    again = trainer(shards, tmp_path / "net")
    again.run(after(2), quiet)
    assert (again.place.epoch, again.place.shards) == (0, 2)
    again.run(after(40), quiet)
    assert (again.place.epoch, again.place.shards) == (1, 3)
    for path in data.shards(shards):
        path.unlink()
    refusal("holds 0 shards", again.run, never, quiet)


def test_a_checkpoint_of_something_else_is_refused(shards, tmp_path):
    trainer(shards, tmp_path / "net").run(after(2), quiet)
    refusal("belongs to a recipe with another rate", trainer, shards, tmp_path / "net", replace(RECIPE, rate=2e-2))
    path = tmp_path / "net" / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-5])
    refusal("not a whole checkpoint", trainer, shards, tmp_path / "net")


def test_divergence_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    said, wanted = rng.normal(0, 3, (2, 70, SENONES))  # more rows than are taken at once
    p, q = (np.exp(x / 2.5) / np.exp(x / 2.5).sum(1, keepdims=True) for x in (wanted, said))
    expected = (p * np.log(p / q)).sum(1).mean()
    logits = torch.from_numpy(said).requires_grad_()
    found = divergence(logits, torch.from_numpy(wanted), 2.5)
    assert float(found.detach()) == pytest.approx(expected)
    (3.0 * found).backward()
    np.testing.assert_allclose(logits.grad.numpy(), 3.0 * (q - p) / (2.5 * len(p)), atol=1e-12)


def test_context_stays_within_the_utterance():
    values = np.arange(6, dtype=np.float32)[:, None] * np.ones(39, np.float32)
    pool = Pool(Frames(values, values + 100, np.array([2, 6], np.int32)))
    found = pool.student_input(np.array([0, 1, 2, 5]), 2, 1)[:, :, 0]
    np.testing.assert_array_equal(found, [[0, 0, 0, 1], [0, 0, 1, 1], [2, 2, 2, 3], [3, 4, 5, 5]])
    np.testing.assert_array_equal(pool.clean(np.array([3]))[:, :, 0], [[103]])
    np.testing.assert_array_equal(pool.later(np.array([0, 1, 4]), 3), [1, 1, 5])


def test_an_epoch_takes_every_frame_once_in_another_order():
    first, second = order(1000, 1, 0), order(1000, 1, 1)
    assert sorted(first) == sorted(second) == list(range(1000))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, order(1000, 1, 0))
    runs = order(1001, 1, 0, run=4)
    assert sorted(runs) == list(range(1001))
    assert (np.diff(runs[runs < 1000].reshape(-1, 4)) == 1).all()


def book(folder: Path, n: int = 640) -> Path:
    path = folder / "book.txt"
    path.write_text("\n".join(f"line {i} of the book" for i in range(n)))
    return path


def test_no_sentence_is_in_two_parts_and_none_of_them_is_tested(tmp_path):
    text = book(tmp_path)
    trained, held_out = data.plan(DataRecipe(text=str(text), held_out=10, passes=2))
    learnt, validated = {s.text for s in trained}, {s.text for s in held_out}
    kept = {*sentences(text, "test"), *sentences(text, "development")}
    assert (len(learnt), len(validated), len(trained)) == (30, 10, 2 * 4 * 30)
    assert not learnt & validated
    assert not (learnt | validated) & kept
    refusal("has 40 sentences; more than the 40", data.plan, DataRecipe(text=str(text), held_out=40))


def test_recordings_are_cut_without_a_gap_and_the_last_is_held_out(tmp_path, shared_audio):
    text = book(tmp_path)
    files = tuple(str(shared_audio / f"{name}.flac") for name in ("polar", "cats"))
    recipe = DataRecipe(text=str(text), held_out=10, human=files, human_passes=3)
    trained, held_out = data.plan(recipe)
    assert {s.file for s in trained if s.file} == {files[0]}
    assert {s.file for s in held_out if s.file} == {files[1]}
    spans = sorted(s.span_s for s in held_out if s.file)
    assert spans[0][0] == 0
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    assert all(3 <= end - start < 13.01 for start, end in spans)
    elsewhere = tuple(str(Path("/elsewhere") / Path(file).name) for file in files)
    assert recipe.digest == DataRecipe(text="/other/book.txt", held_out=10, human=elsewhere, human_passes=3).digest


def test_shards_are_made_once_and_the_same_again(tmp_path, monkeypatch):
    def spoken(text: str, voice: str) -> Array:
        rng = np.random.default_rng([len(voice), *text.encode()])
        return (rng.normal(0, 3000, 4000)).astype(np.int16)

    monkeypatch.setattr(data, "speak", spoken)
    monkeypatch.setattr(data, "SHARD_UTTERANCES", 32)
    recipe = DataRecipe(text=str(book(tmp_path)), held_out=25, passes=1)
    feat_params = sphinx.load(sphinx.default_directory()).feat_params
    data.prepare(recipe, tmp_path / "a", feat_params, quiet)
    ready = data.shards(tmp_path / "a")
    assert len(ready) == 2
    assert json.loads((tmp_path / "a" / "recipe.json").read_text())["held_out"] == 25
    first = ready[1].read_bytes()
    ready[1].unlink()
    stamp = ready[0].stat().st_mtime_ns
    data.prepare(recipe, tmp_path / "a", feat_params, quiet)
    assert ready[1].read_bytes() == first
    assert ready[0].stat().st_mtime_ns == stamp
    data.prepare(recipe, tmp_path / "b", feat_params, quiet, 1)
    assert [path.name for path in data.shards(tmp_path / "b")] == [ready[0].name]
    found = data.read(ready[0])
    assert found.heard.shape == found.clean.shape == (int(found.ends[-1]), 39)
    assert len(found.ends) == 32
    ready[0].write_bytes(b"{}")
    refusal("is no shard", data.read, ready[0])


def test_changes_do_what_they_say():
    rng = np.random.default_rng(0)
    t = np.arange(32_000) / 16_000
    tone = (0.1 * np.sin(2 * np.pi * 1000 * t)).astype(np.float32)
    fast = data.faster(tone, 1.25)
    assert len(fast) == pytest.approx(len(tone) / 1.25, abs=2)
    spectrum = np.abs(np.fft.rfft(fast))
    assert np.argmax(spectrum) / len(fast) * 16_000 == pytest.approx(1250, abs=2)
    noisy = data.roughened(tone, Change(snr_db=12.0, slope=0.5), rng)
    noise = (noisy - tone).astype(np.float64)
    assert 10 * np.log10(np.mean(tone**2.0) / np.mean(noise**2)) == pytest.approx(12.0, abs=0.1)
    power = np.abs(np.fft.rfft(noise)) ** 2
    # Power falls as 1/f: as much in every octave.
    assert power[500:1000].sum() == pytest.approx(power[4000:8000].sum(), rel=0.3)
    softer = data.roughened(tone, Change(level_db=-20.0), rng)
    np.testing.assert_allclose(softer, tone / 10, atol=1e-6)
    changes = {data.draw(np.random.default_rng(i)) for i in range(200)}
    assert len(changes) > 150
    assert {c.warp for c in changes} == set(data.WARPS)


def test_a_warped_front_end_hears_a_voice_of_other_formants():
    plain, warped = FeatureParameters(), 1.1
    starts, offsets, weights = mel_filters(plain)
    others = mel_filters(plain, warped)
    centres = [
        [start + np.average(np.arange(b - a), weights=w[a:b]) for start, a, b in zip(s, o, o[1:], strict=False)]
        for s, o, w in ((starts, offsets, weights), others)
    ]
    ratio = np.array(centres[1]) / centres[0]
    assert np.median(ratio) == pytest.approx(warped, abs=0.01)
    sound = np.random.default_rng(0).normal(0, 0.1, 8000).astype(np.float32)
    feature = Mfcc(plain).features(sound)
    np.testing.assert_array_equal(Mfcc(plain, 1.0).features(sound), feature)
    assert np.abs(Mfcc(plain, warped).features(sound) - feature).mean() > 0.01


@pytest.mark.parametrize("cut", ["kept", "kept_blocks"])
def test_cut_weights_stay_cut_while_the_others_learn(shards, tmp_path, cut):
    recipe = replace(RECIPE, heads=1, **{cut: 0.4})
    begun = started(net(card_of(shards, recipe)), recipe)
    zeros = {name: values == 0 for name, values in begun.tensors.items() if "weight" in name}
    assert all(0.3 < z.mean() < 0.7 for z in zeros.values())
    arguments = (recipe, begun.card, Linear(), shards, tmp_path / "net", torch.device("cpu"))
    Trainer(*arguments, begun).run(after(5), quiet)
    again = Trainer(*arguments, begun)
    again.run(after(5), quiet)
    for name, z in zeros.items():
        values = again.module.tensors()[name]
        np.testing.assert_array_equal(values == 0, z)
        assert (values != begun.tensors[name])[~z].mean() > 0.3  # some units answer nothing at all


def test_hard_labels_teach_too(shards, tmp_path):
    t = trainer(shards, tmp_path / "net", replace(RECIPE, hard=True, heads=1, frames=10_000))
    refusal(r"shard-0000\.safetensors has no labels beside it", t.run, never, quiet)
    for shard in data.shards(shards):
        pool = Pool.of([shard])
        best = Linear().scores(pool, np.arange(len(pool))).argmax(1).numpy().astype(np.uint16)
        best[::5] = labels.UNLABELLED
        save_file({"senones": best}, shard.with_name(shard.name.replace("shard", "labels")))
    _, before = t.validate()
    t.run(never, quiet)
    assert t.validate()[1] > max(3 * before, 0.3)


def test_labels_are_those_of_forced_alignment(tmp_path, monkeypatch, bundled_speech):
    model = sphinx.load(sphinx.default_directory())
    spoken = data.Source(file=str(bundled_speech / "08-kal16-short.flac"), span_s=(0.0, 2.0))
    said = [replace(spoken, text=text) for text in ("yes of course", "a word like qqzzx is in no dictionary", "")]
    made = data.Maker(model.feat_params).frames(replace(spoken, text=""), Change(), np.random.default_rng(0))
    data.write(data.joined([made] * 3), tmp_path / "shard-0000.safetensors")
    monkeypatch.setattr(data, "plan", lambda recipe: (said, []))
    labels.prepare(DataRecipe(), tmp_path, model, quiet)
    found = labels.read(data.shards(tmp_path))
    assert (found[len(made) :] == labels.UNLABELLED).all()
    phones = [model.mdef.phones[p] for p in model.mdef.senone_phone[found[: len(made)]]]
    heard = [phone for phone, _ in groupby(phones) if phone != "SIL"]
    assert heard == ["Y", "EH", "S", "AH", "V", "K", "AO", "R", "S"]


def test_a_trained_net_exports_and_computes_the_same(shards, tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    refusal("no training of tiny", export, RECIPE, tmp_path)
    folder = tmp_path / "cache" / "training" / "tiny"
    t = trainer(shards, folder)
    (folder / "card.json").write_bytes(msgspec.json.encode(t.module.card))
    t.run(after(150), quiet)
    found = nets.load(export(RECIPE, tmp_path / "out"), senones=SENONES)
    assert found.card.about["frames"] == t.place.frames
    log = (tmp_path / "out" / "tiny.log.jsonl").read_text()
    assert log == (folder / "log.jsonl").read_text()
    pool = Pool.of([shards / "held-out.safetensors"])
    with torch.no_grad():
        expected = t.module.answers(torch.from_numpy(pool.student_input(np.arange(30), 1, 1)))[0].numpy()
    scores = forward(found, pool.frames.heard[:31].astype(np.float32))[:30]
    # bfloat16 there and float16 weights here: three digits.
    assert np.abs(scores - expected).max() < 0.05 * np.abs(expected).max()
