"""The accuracy audit: nothing lost where nothing is left out, and what is lost measured against its definition."""

import json
from pathlib import Path

import numpy as np
import pytest
from whole_runs import never, quiet

from app.cli.main import main
from pipelines.audio import loading as audio
from pipelines.audio import transcripts
from pipelines.audio.word_errors import Count
from pipelines.config import Config, ConfigError, assign, presets
from pipelines.experiments.audit import NEAR_NAT, Audit, AuditedUtterance, approximations, audit, exact_of, report
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import sphinx
from pipelines.models.nets import Layer
from pipelines.run.playlist import Item
from pipelines.scoring import build_scorer
from profiler.errors import Cancelled
from profiler.spans import NullLane, Recorder
from tests.pipelines import net_files


@pytest.fixture(scope="module")
def items(bundled_speech: Path) -> list[Item]:
    said = transcripts.read(bundled_speech / "transcripts.tsv").by_place()
    paths = [bundled_speech / name for name in ("08-kal16-short.flac", "04-kal16-numbers.flac")]
    return [Item(path.stem, path, said[path.resolve()]) for path in paths]


def test_requested_scores_are_exact_and_few(quick, items):
    found = audit(assign(quick, {"gmm.senones": "active"}), items, quiet, never)
    assert found.near.largest < 1e-3
    assert (found.agreement, found.wer_change) == (1.0, 0.0)
    assert found.work["senones"] / (found.frames * 5126) == found.shares["senones"]
    assert found.active.scores < found.work["senones"] < 2 * found.active.scores
    assert 0.01 < found.shares["senones"] < 0.9


def test_score_errors_are_those_of_the_definition(quick, items):
    config = assign(quick, {"gmm.selection.method": "top-n", "gmm.selection.top_n": 2})
    found = audit(config, items[:1], quiet, never)
    model, recorder = sphinx.load(sphinx.default_directory()), Recorder()
    frontend = Mfcc(model.feat_params)
    frontend.stages(recorder)
    features = frontend.features(audio.load(items[0].path).samples, 0, NullLane())
    lane = NullLane()
    exact = build_scorer(exact_of(config), model).score(features, 0, lane).astype(float)
    rough = build_scorer(config, model).score(features, 0, lane).astype(float)
    delta = np.abs(rough - exact)[exact >= exact.max(1, keepdims=True) - NEAR_NAT]
    assert found.near.mean == pytest.approx(delta.mean(), rel=1e-3)
    assert found.near.largest == pytest.approx(delta.max(), rel=1e-3)
    assert found.near.scores == pytest.approx(len(delta), rel=1e-3)
    same = (rough.argmax(1) == exact.argmax(1)).mean()
    assert found.agreement == pytest.approx(same)
    assert found.shares["components"] == pytest.approx(2 / 128)
    assert found.shares["gaussians"] == 1.0
    assert found.wer_change_interval() is None  # one utterance says nothing of others


def test_skipping_halves_the_work_and_costs_scores(quick, items):
    found = audit(assign(quick, {"frames.skip": 2}), items[:1], quiet, never)
    assert found.shares["senones"] == pytest.approx(0.5, abs=0.01)
    assert found.near.mean > 0.3
    assert 0.2 < found.agreement < 0.95


def utterance(errors: int, exact: int, words: int) -> AuditedUtterance:
    return AuditedUtterance("u", 1, "", "", "x", Count(errors, 0, 0, words), Count(exact, 0, 0, words))


def test_the_interval_of_the_change_is_that_of_paired_utterances():
    """20 utterances of 10 words, one error more in each of half of them: 5 % ± 1.96 · 10 % · √(¼ / 20)."""
    found = Audit(Config(), [utterance(3 + i % 2, 3, 10) for i in range(20)])
    assert found.wer_change == pytest.approx(0.05)
    half = 1.96 * 0.1 * np.sqrt(0.25 / 20)
    assert found.wer_change_interval() == pytest.approx((0.05 - half, 0.05 + half), abs=0.006)
    # Errors that both make alike are no change, however many.
    found = Audit(Config(), [utterance(i, i, 10) for i in range(10)])
    assert found.wer_change_interval() == (0.0, 0.0)


def test_without_transcripts_there_is_no_error_rate():
    tree = report(Audit(Config(), [AuditedUtterance("u", 3, "a", "a", None, None, None)], frames=3))
    assert {tree[key] for key in ("wer", "wer_exact", "wer_change", "wer_change_ci95", "score_error_near")} == {None}
    assert tree["shares"] == {}


def test_an_audit_can_be_stopped_and_refuses_what_cannot_be(quick, items):
    with pytest.raises(Cancelled):
        audit(quick, items, quiet, lambda: True)
    wrong = assign(quick, {"gmm.senones": "active", "gmm.component": "int8"})
    with pytest.raises(ConfigError, match=r"gmm\.component=int8 acts only with gmm.senones = all"):
        audit(wrong, items, quiet, never)


@pytest.mark.slow
def test_the_verb_names_bad_files_and_prints_what_its_help_says(items, bundled_speech, tmp_path, capsys):
    bad = tmp_path / "bad.wav"
    bad.write_bytes(b"RIFF\x00\x00\x00\x00WAVEnothing")
    arguments = ["audit", "--preset", "gmm-quick", "--set", "gmm.senones=active", "--json"]
    arguments += ["--audio", str(items[0].path), str(bad)]
    arguments += ["--transcripts", str(bundled_speech / "transcripts.tsv")]
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert str(bad) in printed.err
    tree = json.loads(printed.out)
    assert tree["wer"] == tree["wer_exact"] == 0.0
    assert tree["same_best_senone"] == 1.0
    assert tree["transcribed"] == {"utterances": 1, "of": 1}
    (note,) = tree["notes"]
    assert note.startswith("9 rows of the transcripts name no file that is decoded: 01-slt-")
    assert tree["utterances"][0]["hypothesis"] == "yes of course"
    assert tree["config"]["gmm"]["senones"] == "active"
    import app.cli.audit as verb

    assert all(key in (verb.__doc__ or "") for key in tree if key != "schema")
    assert main([*arguments[:5], "--audio", str(items[0].path)]) == 0
    text = capsys.readouterr().out
    assert "which is the exact one in 100.0 % of the frames" in text
    assert "Without transcripts the word errors are not known." in text


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, {}),
        ({"search.beam": 5.0, "block": 1, "dnn.senones": "active"}, {}),
        ({"frames.skip": 2}, {"frames.skip": 2}),
        ({"gmm.selection.method": "top-n"}, {"gmm.selection.enabled": True, "gmm.selection.method": "top-n"}),
        ({"model": "dnn", "dnn.dtype": "int8", "gmm.senones": "active"}, {"dnn.dtype": "int8"}),
    ],
)
def test_settings_that_make_scoring_inexact_are_named(changes, wanted):
    plain = assign(presets.load("gmm-quick").config, {"dnn.senones": "all"})
    assert approximations(assign(plain, changes)) == wanted


@pytest.mark.slow
def test_a_net_is_audited_against_all_of_it_in_float32(items, tmp_path):
    made = net_files.net(net_files.card(Layer(48), Layer(48), senones=5126))
    graph = {"graph.vocabulary": 500, "graph.bigrams": 5000, "search.beam": 5.0}
    path = str(net_files.write(tmp_path, made))
    net = assign(presets.load("dnn").config, {**graph, "dnn.net": path})
    changed = {"dnn.shrink": "low-rank", "dnn.senones": "active", "frames.skip": 2}
    assert exact_of(assign(net, {**changed, "dnn.dtype": "int8"})) == net
    found = audit(assign(net, changed), items[:1], quiet, never)
    reported = report(found)
    assert 0 < reported["shares"]["senones"] < 0.5
    assert reported["frames_copied"] == pytest.approx(0.5, abs=0.01)
    assert reported["score_error_asked"] > 0
    exact = audit(net, items[:1], quiet, never)
    assert report(exact)["frames_copied"] == 0.0
    assert exact.near.largest < 1e-3  # sums of blocks of another size are taken in another order
