"""Reruns on real speech: interleaved arms, changes and their reasons."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from whole_runs import NET, QUICK, never, quiet, reasons

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.config import presets
from pipelines.experiments import perturb, rerun
from pipelines.frontend.mfcc import MFCC, Mfcc
from pipelines.models import sphinx
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.playlist import Item
from pipelines.run.recogniser import build
from pipelines.scoring import build_scorer, frames, selection, senones
from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import OVERHEAD
from profiler.analysis.comparison.arms import CELL_FRAMES, pairs, total
from profiler.errors import BadInput, Cancelled
from profiler.recording.drained_lane import DrainedLane
from profiler.session.writer import NullWriter
from profiler.spans import NullLane, Recorder
from tests.profiler.profiler_sessions import ROOF_TABLE

MODELLED = {"frontend", "scoring", "search", "transfer"}


@pytest.fixture(scope="module")
def recogniser():
    return build(QUICK, Recorder(), NullLane(), quiet, never)


def test_every_stage_has_a_cost_law_or_a_reason(recogniser, short):
    """With every selection method, frame rule and senone rule that there is, one thread and two."""
    announced: dict[str, str] = {}
    lawful: set[str] = set()
    for changes in (
        *({"gmm.selection.method": method} for method in selection.METHODS["Tied"]),
        *({"frames.skip": 2, "frames.rule": rule} for rule in frames.RULES),
        *({"gmm.senones": rule} for rule in senones.RULES),
        {"threads": 2},
    ):
        config = settings.assign(QUICK, changes)
        chosen = recogniser if config.threads == 1 else build(config, Recorder(), NullLane(), quiet, never)
        chosen.configure(config)
        recorder = Recorder()
        lane = recorder.lane("decode", decode=True, make=DrainedLane)
        Decoder(chosen, recorder, lane, NullWriter(), Control()).run([Item("x", short, None)])
        stages = {stage.id: stage for stage in recorder.stages}
        announced |= {s.name: s.group for s in recorder.stages if s.group in MODELLED}
        costs = {stages[number].name: cost for number, _, cost in recorder.costs}
        ran = {stages[int(number)] for number in np.unique(lane.drain()["stage"])}
        assert len(ran) > 8
        for stage in ran:
            if stage.group in MODELLED:
                cost = costs[stage.name]
                if cost.is_empty:
                    assert cost.unmodelled, stage.name
                    continue
                # A law counts something that the stage reports, or the frames it covers.
                assert cost.bytes_min.total(1, 16, (9, 9, 9)) > 0, stage.name
                shares = stage.group == "scoring" and stage.name != "score.copy"
                assert cost.threads == (config.threads if shares else 1), stage.name
        lawful |= {name for name, cost in costs.items() if not cost.is_empty or cost.unmodelled}
    recogniser.configure(QUICK)
    assert set(announced) <= lawful
    assert {"frontend.audio", "score.copy", "search.backtrace"} <= set(announced)


def test_front_end_products_count_as_torch_counts_them():
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    front_end, n = Mfcc({}), 7
    p = front_end.parameters
    bins = p.nfft // 2 + 1
    dense = np.zeros((p.nfilt, bins))
    for k, start in enumerate(front_end.starts):
        weights = front_end.weights[front_end.offsets[k] : front_end.offsets[k + 1]]
        dense[k, start : start + len(weights)] = weights
    products, cosines = FlopCounterMode(display=False), FlopCounterMode(display=False)
    with products:
        mel = torch.ones(n, bins, dtype=torch.float64) @ torch.from_numpy(dense.T)
    with cosines:
        mel @ torch.from_numpy(front_end.transform.T)
    # The filters are triangles: only what is not zero is multiplied.
    filters = products.get_total_flops() * len(front_end.weights) / dense.size
    fft_and_power = n * (2.5 * p.nfft * np.log2(p.nfft) + 3 * bins)
    law = front_end.costs()[MFCC].operations["scalar"]
    assert law.total(1, n, (0, 0, 0)) == pytest.approx(fft_and_power + filters + cosines.get_total_flops(), rel=1e-12)


def test_a_stretch_is_bounded_cut_and_named(short, tmp_path):
    sound = audio.load(short)
    whole = rerun.audio_of([Item("x", short, None)] * 2, tmp_path, 12.0)
    assert [item.path for item in whole.items] == [short]
    assert whole.audio_s == pytest.approx(sound.duration_s)
    assert "session's audio" in whole.note
    cut = rerun.audio_of([Item("x", short, None)], tmp_path, 0.6)
    assert cut.audio_s == 0.6
    np.testing.assert_array_equal(audio.load(cut.items[0].path).samples, sound.samples[:9600])
    gone = rerun.audio_of([Item("x", tmp_path / "gone.wav", None)], tmp_path, 3.0)
    assert "bundled synthetic voices" in gone.note
    assert 0 < gone.audio_s < 6.0
    assert "names no audio" in rerun.audio_of([], tmp_path, 1.0).note
    # A model may take another rate than most: what is cut keeps that of its file.
    soundfile.write(tmp_path / "long.wav", np.random.default_rng(0).normal(0, 0.1, 44_100), 22_050)
    (item,) = rerun.audio_of([Item("long", tmp_path / "long.wav", None)], tmp_path, 0.6).items
    about = soundfile.info(item.path)
    assert (about.samplerate, about.frames) == (22_050, 13_230)


def test_a_stretch_has_the_parts_that_the_session_decoded(tmp_path):
    both = np.random.default_rng(0).uniform(-0.5, 0.5, (32_000, 2)).astype(np.float32)
    soundfile.write(tmp_path / "call.wav", both, 16_000, subtype="FLOAT")
    parts = ({"channel": 0}, {"channel": 1}, {"channel": 1, "begin_s": 0.5, "end_s": 1.0})
    spoken = [
        SimpleNamespace(name=f"call-{n}", path=str(tmp_path / "call.wav"), part=part, reference=None)
        for n, part in enumerate(parts)
    ]
    items = rerun.items_of(spoken)
    found = rerun.audio_of(items, tmp_path, 6.0)
    assert found.items == tuple(items)
    assert found.audio_s == 4.5
    assert found.beginning
    sounds = [audio.load(item.path, item.part).samples for item in found.items]
    for sound, expected in zip(sounds, (both[:, 0], both[:, 1], both[8_000:16_000, 1]), strict=True):
        np.testing.assert_array_equal(sound, expected)
    cut = rerun.audio_of(items[1:2], tmp_path, 1.0)
    np.testing.assert_array_equal(audio.load(cut.items[0].path).samples, both[:16_000, 1])
    for broken in ({"channel": -1}, {"channel": "left"}, {"side": 1}, {"end_s": 0}):
        with pytest.raises(BadInput, match="call-9"):
            rerun.items_of([SimpleNamespace(name="call-9", path="x.wav", part=broken, reference=None)])


def test_whether_a_stretch_is_what_came_first_is_known(short, tmp_path):
    places = {"s": short, "o": tmp_path / "other.flac", "g": tmp_path / "gone.wav"}
    shutil.copy(short, places["o"])
    for order, first in (("so", True), ("ss", True), ("sso", False), ("gs", False), ("sgo", False), ("g", False)):
        found = rerun.audio_of([Item("x", places[letter], None) for letter in order], tmp_path, 12.0)
        assert found.beginning == first, order


@pytest.mark.skipif("sys.platform == 'win32'")
def test_what_is_no_file_is_not_run_again(short, tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    named = (pipe, link, Path("nul\0"), short)
    found = rerun.audio_of([Item("x", path, None) for path in named], tmp_path, 12.0)
    assert [item.path for item in found.items] == [short]
    session = tmp_path / "s.asrs"
    for unnamed in (QUICK, settings.replace(QUICK, "audio.raw", "16000:s16le")):
        assert rerun.named_files(unnamed, session) == (unnamed, [])
    for key, value in (
        ("graph.dictionary", pipe),
        ("dnn.net", link),
        ("graph.grammar", tmp_path),
        ("model_directory", short),
        ("graph.language_model", tmp_path / "gone.arpa"),
    ):
        with pytest.raises(BadInput, match=rf"names .* as its {key}, and no"):
            rerun.named_files(settings.replace(QUICK, key, str(value)), session)
    named = settings.assign(QUICK, {"graph.dictionary": str(short), "model_directory": str(tmp_path)})
    config, (sentence,) = rerun.named_files(named, session)
    assert config == named
    assert f"graph.dictionary={short}" in sentence
    assert f"model_directory={tmp_path}" in sentence


def test_the_longest_configuration_is_taken():
    def epoch(first: int, skip: int) -> SimpleNamespace:
        return SimpleNamespace(first_frame=first, tree={"frames": {"skip": skip}})

    epochs = [epoch(0, 1), epoch(50, 2), epoch(300, 3)]
    config, first, last = rerun.settings_of(epochs, 400)
    assert (config.frames.skip, first, last) == (2, 50, 300)
    assert rerun.settings_of(epochs[:2], 400)[1:] == (50, 400)
    with pytest.raises(BadInput, match="no configuration"):
        rerun.settings_of([], 10)
    with pytest.raises(BadInput, match="session's configuration"):
        rerun.settings_of([SimpleNamespace(first_frame=0, tree={"nonsense": 1})], 10)


@pytest.mark.slow
def test_arms_are_interleaved_and_their_times_add_up(short, tmp_path, monkeypatch):
    order, decode = [], rerun.Runner.decode
    record = lambda self, item: order.append(self._config.frames.skip) or decode(self, item)  # noqa: E731
    monkeypatch.setattr(rerun.Runner, "decode", record)
    stretch = rerun.audio_of([Item("x", short, None)], tmp_path)
    arms = [rerun.Arm("all", QUICK), rerun.Arm("half", settings.replace(QUICK, "frames.skip", 2))]
    rounds = rerun.decode(arms, stretch, ROOF_TABLE, quiet, never, budget_s=0.0)
    assert rounds == rerun.MIN_ROUNDS
    of_rounds = list(zip(order[::2], order[1::2], strict=True))
    assert len(of_rounds) == rounds + rerun.WARM_UP_ROUNDS
    assert set(of_rounds) == {(1, 2), (2, 1)}
    assert of_rounds[0] != of_rounds[1], "another arm begins each round"
    n_frames = Mfcc({}).n_frames(len(audio.load(short).samples))
    for arm in arms:
        parts = breakdown(arm.recording)
        assert arm.times.by_utterance.shape == (rounds, 1)
        assert arm.times.by_utterance.sum() == pytest.approx(parts.wall_ns)
        # What the run itself does is one sum there, with what lies between all stages.
        overhead = parts.between_ns + sum(row.time_ns for row in parts.stages if row.group == OVERHEAD)
        assert arm.times.stages[OVERHEAD].sum() == pytest.approx(overhead)
        for row in parts.stages:
            if row.group != OVERHEAD:
                times = arm.times.stages[row.name]
                assert times.shape == (rounds, round(n_frames / CELL_FRAMES))
                assert times.sum() == pytest.approx(row.time_ns)
                assert row.sentence
    full, half = ({row.name: row.work for row in breakdown(arm.recording).stages} for arm in arms)
    components = [work["score.mixture"]["components"] for work in (half, full)]
    assert components[0] / components[1] == pytest.approx(0.5, abs=0.02)
    assert "score.copy" not in full
    measured = total(pairs(arms[0].times, arms[1].times).values()).ratio()
    assert measured.low < measured.ratio < measured.high


def test_a_rerun_can_be_stopped_and_names_broken_audio(short, tmp_path):
    sound = tmp_path / "x.flac"
    shutil.copy(short, sound)
    stretch = rerun.audio_of([Item("x", sound, None)], tmp_path)
    asked = iter([False] * 6 + [True] * 100)
    with pytest.raises(Cancelled):
        rerun.decode([rerun.Arm("a", QUICK)], stretch, ROOF_TABLE, quiet, lambda: next(asked))
    sound.write_bytes(b"nothing")
    with pytest.raises(BadInput, match=r"x\.flac"):
        rerun.decode([rerun.Arm("a", QUICK)], stretch, ROOF_TABLE, quiet, never)


SERIAL = {"threads +1": "one thread", "threads −1": "one thread"}


def test_changes_that_cannot_be_made_say_why(monkeypatch):
    monkeypatch.setattr(perturb.os, "cpu_count", lambda: 2)
    big = presets.load("gmm").config
    at_the_edge = settings.assign(big, {"block": 64, "threads": 2})
    mixture = {"dtype halved": "float32", "threads −1": "fewest"}
    edge = {"block ×2": "64 frames", "dtype halved": "float32", "threads +1": "2 processors"}
    for config, group, work, refused in (
        (big, "scoring", "components", mixture),
        (big, "scoring", "", mixture | {"model shrunk": "no work"}),
        (at_the_edge, "scoring", "x", edge),
        (big, "search", "arcs", {"dtype halved": "only scoring"} | SERIAL),
        (settings.replace(big, "block", 1), "search", "x", {"block ×½": "smallest", "dtype halved": ""} | SERIAL),
        (QUICK, "search", "arcs", {"dtype halved": "", "model shrunk": "1000 words"} | SERIAL),
    ):
        found = {name: why for name, why in reasons(config, "score.mixture", group, work).items() if why}
        assert found.keys() == refused.keys()
        assert all(refused[name] in why for name, why in found.items())
    assert all(reasons(big, "frontend.mfcc", "frontend").values())


def test_a_model_of_senones_with_gaussians_of_their_own_shrinks_exactly():
    untied = settings.replace(presets.load("gmm").config, "model", "continuous")
    made = {c.name: c for c in perturb.changes(untied, "score.gmm", "scoring", "gaussians")}
    shrunk = made["model shrunk"]
    assert (shrunk.text, shrunk.per, shrunk.alone) == ("components 42 → 21", "gaussians", False)
    assert shrunk.config == settings.replace(untied, "gmm.components", 21)
    shorter = made["dtype halved"]
    why = settings.unavailable_reason(untied, "gmm.component", "int8")
    assert shorter.unavailable == (why.rstrip(".") if why else None)
    assert why or shorter.config == settings.replace(untied, "gmm.component", "int8")
    least = settings.replace(untied, "gmm.components", 8)
    assert "8 components" in reasons(least, "score.gmm", "scoring", "x")["model shrunk"]
    small = settings.replace(untied, "gmm.component", "max")
    assert "max already" in reasons(small, "score.gmm", "scoring", "x")["dtype halved"]
    on_device = settings.replace(untied, "device", "torch-cpu")
    halved = {c.name: c for c in perturb.changes(on_device, "score.gmm", "scoring")}["dtype halved"]
    assert halved.text == "dtype fp32 → bf16" or halved.unavailable


@pytest.mark.slow
def test_confirming_a_stage_of_real_speech(short, tmp_path, monkeypatch):
    monkeypatch.setattr(perturb.os, "cpu_count", lambda: 1)
    # Of a smaller cache than this no codebook may find room, and nothing is shrunk then.
    monkeypatch.setattr(perturb, "_second_level", lambda: float(2 << 20))
    monkeypatch.setattr(rerun, "MAX_ROUNDS", rerun.MIN_ROUNDS)
    stretch = rerun.audio_of([Item("x", short, None)], tmp_path)
    arm = rerun.Arm("a", QUICK)
    rerun.decode([arm], stretch, ROOF_TABLE, quiet, never)
    row = next(r for r in breakdown(arm.recording).stages if r.name == "score.mixture")
    found = perturb.confirm(QUICK, row, stretch, ROOF_TABLE, quiet, never)
    assert found.unchanged.name == "score.mixture"
    made = {p.name: p for p in found.perturbations}
    changes = {"block ×2", "block ×½", "dtype halved", "threads +1", "threads −1", "model shrunk"}
    assert made.keys() == changes
    double = made["block ×2"]
    assert double.change == "block 16 → 32"
    # The verdict in question predicts by all of its parts, and which one it is depends on the run.
    exactly = 1e-6 if row.verdict != "compute-bound" else 0.2
    assert double.by_verdict["compute-bound"] == pytest.approx(1.0, rel=exactly)
    assert double.by_verdict["call-bound"] == pytest.approx(0.5, abs=0.1)
    assert 0 < double.measured.low <= double.measured.ratio <= double.measured.high
    shrunk = made["model shrunk"]
    assert shrunk.per == "components"
    # Of the few senones that two codebooks have most lanes are padding; a ratio of 1 is rounded.
    # The stage's own verdict predicts memory too, and a smaller model reads less of it.
    assert shrunk.by_verdict["compute-bound"] >= 1.0 - exactly
    assert shrunk.by_verdict["call-bound"] > 5.0
    mfcc = next(r for r in breakdown(arm.recording).stages if r.name == "frontend.mfcc")
    idle = perturb.confirm(QUICK, mfcc, stretch, ROOF_TABLE, quiet, never)
    assert (idle.rounds, idle.unchanged) == (0, None)


def test_fewer_codebooks_score_their_senones_as_before():
    model = sphinx.load(sphinx.default_directory())
    small = perturb.fewer_codebooks(model, 3)
    features = np.random.default_rng(1).standard_normal((5, 39)).astype(np.float32)
    scores = [build_scorer(QUICK, m).score(features, 0, NullLane()) for m in (model, small)]
    assert scores[1].shape == (5, small.n_senones)
    np.testing.assert_allclose(scores[1], scores[0][:, model.senone_codebook < 3], rtol=1e-5, atol=1e-4)


def test_a_net_is_perturbed_by_its_own_settings():
    made = {c.name: c for c in perturb.changes(NET, "score.output", "scoring", "senones")}
    assert made["block ×2"].config == settings.replace(NET, "block", 8)
    halved, shrunk = made["dtype halved"], made["model shrunk"]
    assert (halved.text, halved.config) == ("dtype fp32 → int8", settings.replace(NET, "dnn.dtype", "int8"))
    assert (shrunk.per, shrunk.config) == ("frame", settings.replace(NET, "dnn.shrink", "low-rank"))
    small = settings.assign(NET, {"dnn.shrink": "low-rank", "dnn.dtype": "int8"})
    again = reasons(small, "score.output", "scoring", "senones")
    assert "low-rank already" in again["model shrunk"]
    assert "int8 already" in again["dtype halved"]
    graph = settings.replace(NET, "dnn.net", "other.onnx")
    refused = reasons(graph, "score.net", "scoring", "frames")
    assert "onnxruntime" in refused["dtype halved"]
    assert "onnxruntime" in refused["model shrunk"]
    assert refused["block ×2"] is None
