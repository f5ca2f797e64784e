"""A folder with a net of nnet3 that scores every third frame: opened, decoded, and recorded over all its frames."""

from contextlib import closing
from pathlib import Path
from statistics import mode
from typing import Any

import kaldi_writer as writer
import nnet3_nets
import numpy as np
import pytest

from pipelines.audio import loading as audio
from pipelines.config import Config, assign, assign_with_folder
from pipelines.experiments import explain, perturb, replays
from pipelines.experiments.rerun import Stretch
from pipelines.frontend.kaldi import KaldiStream
from pipelines.models import kaldi, opening
from pipelines.run import recogniser
from pipelines.run.playlist import Item
from pipelines.run.session_run import Outcome
from pipelines.scoring import build_scorer
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.session.reader import Session
from profiler.spans import NullLane, Recorder
from tests.each import each
from tests.pipelines import whole_runs
from tests.pipelines.refusing import refusal
from tests.short_runs import explain_briefly

FILES = ("01-slt-morning.flac", "08-kal16-short.flac")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nnet3_nets.write_folder(tmp_path_factory.mktemp("nnet3") / "model")


def config(folder: Path, **changes: Any) -> Config:
    """With a scale of the scores of a net that was not trained by which some words are recognised and some are not."""
    chosen = {
        "block": 16,
        "search.acoustic_scale": 1.0,
        "search.insertion_penalty": -3.0,
        "model_directory": str(folder),
    }
    return assign_with_folder(Config(), chosen | {key.replace("__", "."): v for key, v in changes.items()})


def run(folder: Path, speech: Path, out: Path | None = None, **changes: Any) -> Outcome:
    return whole_runs.run(config(folder, **changes), [speech / name for name in FILES], out)


def words(outcome: Outcome) -> list[str]:
    return [u.hypothesis for u in outcome.result.utterances]


@pytest.fixture(scope="module")
def expected(folder: Path, bundled_speech: Path) -> list[str]:
    found = words(run(folder, bundled_speech))
    assert len(" ".join(found).split()) > 5
    return found


def test_the_folder_says_what_it_is(folder):
    model = kaldi.load(folder)
    assert (model.kind, model.n_senones, model.n_features, model.subsampling) == ("nnet3", 8, 13, 3)
    first = model.notes[0]
    assert "Kaldi net (nnet3) final.mdl: 3 phones, 8 pdfs, " in first
    assert "16,000 Hz, 13 MFCCs, no i-vectors" in first
    assert "context −8 … +8 frames, one output for 3; graph HCLG.fst" in first
    assert any("what only training needs is not computed: prefinal-xent.affine" in note for note in model.notes)


WAYS = [
    {"block": 1},
    {"block": 200},
    {"dnn__senones": "active"},
    {"dnn__senones": "active-ahead", "block": 7},
    {"dnn__context": "again"},
    {"dnn__product": "blas"},
    {"threads": 2},
]


@pytest.mark.slow
@each("changes", WAYS)
def test_the_words_are_the_same_however_they_are_computed(folder, bundled_speech, expected, changes):
    assert words(run(folder, bundled_speech, **changes)) == expected


@pytest.mark.slow
def test_integers_and_skipped_rows_decode_too(folder, bundled_speech):
    assert words(run(folder, bundled_speech, dnn__dtype="int8"))[0]
    small, large = (words(run(folder, bundled_speech, frames__skip=2, block=block)) for block in (3, 30))
    assert small == large


@pytest.mark.slow
@pytest.mark.parametrize("senones", ["all", "active"])
def test_a_session_covers_all_frames_and_times_its_words_by_them(folder, bundled_speech, expected, senones, tmp_path):
    out = tmp_path / "net.asrs"
    assert words(run(folder, bundled_speech, out, dnn__senones=senones, replay=0.1)) == expected
    with closing(Session.open(out)) as session:
        ids = {stage.name: number for number, stage in session.stages.items()}
        spans = session.spans
        frames = sum(u.n_frames for u in session.utterances)
        output = "score.output.affine" if senones == "all" else "score.active outputs"
        for stage in ("decode.block", "search.emit", "search.epsilon", "score.lda", output):
            mine = spans[spans["stage"] == ids[stage]]
            covered = [np.arange(span["first_frame"], span["first_frame"] + span["frames"]) for span in mine]
            np.testing.assert_array_equal(np.sort(np.concatenate(covered)), np.arange(frames), err_msg=stage)
        rows = sum(-(-u.n_frames // 3) for u in session.utterances)
        if senones == "all":
            assert int(spans[spans["stage"] == ids[output]]["work0"].sum()) == 8 * rows
        assert any(stage.name == "replay.score.lda" for stage in session.stages.values())
        for utterance in session.utterances:
            ends = [(start, start + length) for _, start, length in utterance.words]
            assert all(a < b for a, b in ends)
            assert ends == sorted(ends)
            n = utterance.n_frames
            assert n // 2 < ends[-1][1] - utterance.first_frame <= n


@each(
    "changes, sentence",
    [
        ({"model": "continuous"}, "model=dnn scores with it, model=continuous is for mixtures"),
        ({"dnn.net": "small"}, "dnn.net=small is for other nets"),
        ({"dnn.shrink": "low-rank"}, "dnn.shrink=low-rank is for other nets"),
        ({"frames.rule": "multi-frame", "frames.skip": 2}, "frames.rule=multi-frame is for nets with several"),
        ({"device": "torch-cpu"}, "it needs device=cpu"),
    ],
)
def test_what_its_net_cannot_do_is_refused(folder, changes, sentence):
    chosen = assign(config(folder), changes)
    refusal(sentence, lambda: build_scorer(chosen, opening.open_model(chosen)))


@pytest.mark.slow
def test_what_goes_frame_by_frame_is_refused(folder):
    built = recogniser.build(config(folder), Recorder(), NullLane(), lambda *_: None, lambda: False)
    assert built.block == 18
    refusal("An audit goes frame by frame, and this net scores one of 3 frames", built.needs_every_frame, "An audit")


@pytest.mark.parametrize(("stage", "senones"), [("score.tdnnf2.linear", "all"), ("search.emit", "active")])
def test_a_stage_is_explained_by_whole_rows(folder, bundled_speech, stage, senones, monkeypatch):
    explain_briefly(monkeypatch)
    advanced: list[tuple[int, int]] = []
    advance = Viterbi.advance

    def noted(search: Viterbi, scores: Array, first: int, lane: Any = None, audio_frames: int | None = None) -> None:
        advanced.append((len(scores), audio_frames or 3 * len(scores)))
        advance(search, scores, first, lane or NullLane(), audio_frames)

    monkeypatch.setattr(Viterbi, "advance", noted)
    path = bundled_speech / FILES[1]
    stretch = Stretch((Item("short", path, None),), audio.load(path).duration_s, "the short voice")
    found = explain.explain(config(folder, dnn__senones=senones), stage, stretch, lambda *_: None, lambda: False)
    names = {way.name for way in found.ways}
    assert {replays.RUN, replays.HOT, replays.COLD, replays.PLACED} <= names
    assert {replays.FRAME_LESS} <= names if stage == "search.emit" else {replays.LESS, replays.MORE} <= names
    assert all(rows == -(-frames // 3) for rows, frames in advanced)
    assert mode(rows for rows, _ in advanced) == (1 if senones == "active" else 6)


def test_changes_that_the_folder_does_not_allow_are_no_perturbations(folder):
    chosen = config(folder)
    for stage, group, why in (("score.output", "scoring", "its own net"), ("search.emit", "search", "its own graph")):
        made = {change.name: change for change in perturb.changes(chosen, stage, group, "arcs")}
        assert why in (made["model shrunk"].unavailable or "")


def test_other_nets_have_no_context_to_compute_again():
    chosen = assign(Config(), {"model": "dnn", "dnn.context": "again"})
    refusal(r"dnn\.context=again is for nets of Kaldi", build_scorer, chosen, opening.open_model(chosen))


def test_a_net_and_features_that_do_not_fit_are_refused(tmp_path):
    folder = nnet3_nets.write_folder(tmp_path / "model", ivector_dim=4)
    refusal("takes i-vectors of 4 values, and the folder has no extractor", kaldi.load, folder)
    (folder / "conf/mfcc.conf").write_text("--num-ceps=20\n")
    refusal("takes 13 values of a frame, mfcc.conf makes 20", kaldi.load, folder)
    refusal("its transitions name 8 pdfs, it has 7", kaldi.load, nnet3_nets.write_folder(tmp_path / "few", pdfs=7))
    nnet2 = b"\0B" + writer.transition_model(writer.PHONES, writer.TUPLES) + writer.token("<Nnet>")
    (tmp_path / "final.mdl").write_bytes(nnet2)
    refusal(r"neural net of Kaldi's nnet2 \(<Nnet>\), which is not read", kaldi.load, tmp_path)


def test_ivectors_follow_the_search_and_a_stream_hears_what_the_whole_does(bundled_speech, tmp_path, monkeypatch):
    folder = nnet3_nets.write_folder(tmp_path / "model", ivector_dim=7)
    writer.write_ivector(folder)
    conf = folder / "conf/model.conf"
    asked, heard = list[tuple[int, str, int]](), list[Array]()
    adapt, rows = KaldiStream.adapt, KaldiStream.rows

    def noted(stream: KaldiStream, end: int, silent: Array, decoded: int) -> Any:
        asked.append((end, "".join("s" if each else "a" for each in silent), decoded))
        return adapt(stream, end, silent, decoded)

    def kept(stream: KaldiStream, begin: int, count: int, context: tuple[int, int]) -> Array:
        found = rows(stream, begin, count, context)
        heard.append(found[context[0] : context[0] + count, 13:].copy())
        return found

    monkeypatch.setattr(KaldiStream, "adapt", noted)
    monkeypatch.setattr(KaldiStream, "rows", kept)

    def decoded(**changes: Any) -> tuple[list[str], list[tuple[int, str, int]], Array]:
        asked.clear()
        heard.clear()
        found = words(run(folder, bundled_speech, None, block=24, **changes))
        return found, asked[1:], np.concatenate(heard)  # the first one warms up

    # Without phones of silence all frames count alike.
    _, unweighted, others = decoded()
    assert {letter for _, path, _ in unweighted for letter in path} == {"a"}
    conf.write_text(conf.read_text() + "--endpoint.silence-phones=2\n")
    whole, calls, vectors = decoded()
    assert " ".join(whole).split()
    assert np.abs(others - vectors).max() > 0.01
    starts = [i for i, (_, _, rows) in enumerate(calls) if not rows]
    assert len(starts) == len(FILES)
    ends, paths, decoded_rows = zip(*calls[: starts[1]], strict=True)
    assert np.unique(np.diff(ends[:-1])).tolist() == [24]
    assert decoded_rows == tuple(range(0, 8 * len(ends), 8))
    assert [len(path) for path in paths] == [min(n, 100) for n in decoded_rows]
    assert "s" in "".join(paths)
    again, streamed, same = decoded(stream__chunk_ms=200, stream__endpoint=False)
    assert (again, streamed) == (whole, calls)
    np.testing.assert_array_equal(same, vectors)
