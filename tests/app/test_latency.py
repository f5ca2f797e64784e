"""Latency of a session, of settings, and of words: parts, and words taken back, against numbers worked out by hand."""

import json
import os
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from views_desk import amount, look, pixels, settle, view_on

import assets
from app.model import latency, word_latency
from app.model.latency import Latency
from app.model.report import report
from app.model.report_lines import headline
from app.model.word_latency import PARTS
from app.style.theme import theme
from app.views.latency import COLORS, LatencyView, stack_of
from pipelines import config as settings
from pipelines.config import presets
from profiler.session.facts import StreamFacts
from profiler.session.model import Utterance
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.each import each
from tests.fake_clock import FakeClock


def tree(**changes):
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return settings.to_dict(settings.assign(presets.load("dnn").config, dotted))


def session(configs, about):
    configs = [SimpleNamespace(first_frame=first, tree=tree) for first, tree in configs]
    return SimpleNamespace(configs=configs, meta={"scoring": about})


class Track:
    """1 ms of compute, 2 of memory, 2 of neither, 1 of other programs, 4 of copying per frame; more of the rest."""

    n_frames = 300

    def total_ns(self, first, last):
        return np.array([1, 2, 2, 1, 4, 50, 60, 70], float) * 1e6 * (last - first)


ABOUT = {"senones": 5126, "context": [10, 7]}


def test_the_parts_are_block_context_and_scoring_of_the_block():
    found = latency.of_session(session([(0, tree(block=16))], ABOUT), Track())
    assert (found.block_frames, found.context_frames) == (16, 7)
    assert found.score_s == pytest.approx(16 * 0.009)
    assert found.total_s == pytest.approx(0.16 + 0.07 + 0.144)
    assert latency.texts(found.as_dict())[0] == ("latency 374 ms: 160 ms block + 70 ms context + 144 ms scoring")


def test_the_settings_in_force_at_the_playhead_count():
    changed = session([(0, tree(block=16)), (100, tree(block=1))], ABOUT)
    assert latency.of_session(changed, Track()).block_frames == 1
    assert latency.of_session(changed, Track(), 100).block_frames == 16
    assert latency.of_session(changed, Track(), 0).score_s is None


def test_what_is_not_known_is_left_out_and_the_whole_with_it(tmp_path):
    old = latency.of_session(session([(0, tree(block=16))], None), Track())
    assert old.context_s is None
    assert old.total_s is None
    assert latency.texts(old.as_dict())[0].startswith("latency over 304 ms: 160 ms block + 144 ms")
    assert latency.of_session(session([], ABOUT), Track()) is None
    # Another net than the first is known by what the session tells of it, not by its card.
    net = tmp_path / "other.safetensors"
    net.with_suffix(".json").write_text('{"right": 4}')
    other = session([(0, tree(block=16)), (50, tree(block=16, dnn__net=str(net)))], ABOUT)
    assert latency.of_session(other, Track()).context_frames is None
    other.meta["nets"] = {str(net): {"context": [2, 3]}}
    assert latency.of_session(other, Track()).context_frames == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_no_file_is_opened_because_a_session_names_it(window, finished, tmp_path):
    """A card that is a pipe would be waited for without end; one that is a file would be believed."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "file.json").write_text('{"right": 4}')
    w = window()
    w.open_session(finished)
    assert w.desk.form.fields[latency.BLOCK_KEY].note.full == "latency over 170 ms: 160 ms block + 9.6 ms scoring"
    for name in ("pipe", "file"):
        named = tree(block=16, dnn__net=str(tmp_path / f"{name}.safetensors"))
        with sqlite3.connect(finished) as connection:
            connection.execute("UPDATE config SET tree=?", (json.dumps(named),))
        connection.close()
        w.open_session(finished)
        note = w.desk.form.fields[latency.BLOCK_KEY].note
        assert w.pipeline.value(latency.NET_KEY) == named["dnn"]["net"]
        w.pipeline.edit()
        w.pipeline.set("block", 8)
        assert note.full == "latency over 80 ms: 80 ms block"
        w.playhead.close()
        assert note.full == "latency over 80 ms: 80 ms block"


def test_settings_take_the_context_from_the_card_and_the_time_from_a_session_alike(tmp_path):
    config = presets.load("dnn").config
    after = json.loads(assets.path("nets", "base.json").read_bytes())["right"]
    assert latency.of_settings(config) == Latency(16, after, None)
    assert latency.of_settings(presets.load("gmm").config) == Latency(16, 0, None)
    mine = tmp_path / "mine.onnx"
    named = settings.replace(config, "dnn.net", str(mine))
    assert latency.of_settings(named).context_frames is None
    mine.with_suffix(".json").write_text('{"right": 4}')
    assert latency.of_settings(named, chosen=False).context_frames is None
    assert latency.of_settings(named).context_frames == 4
    mine.with_suffix(".json").write_text("[]")
    assert latency.of_settings(named).context_frames is None
    measured = Latency(16, 9, 0.002)
    assert latency.of_settings(config, measured, tree()) is measured
    assert latency.of_settings(config, measured, tree(search__beam=9.0)) is measured
    assert latency.of_settings(config, measured, tree(block=1)).score_s is None


def test_the_report_has_latency_and_the_shares_really_done(finished):
    with Session.open(finished) as recorded:
        recorded.meta["scoring"] = {"senones": 10_000, "context": [0, 0]}
        found = report(recorded)
    # 16 frames of 0.6 ms each; of 10 000 senones 5 000 are scored and 90 asked for.
    assert found["latency"]["score_s"] == pytest.approx(16 * 0.6e-3)
    assert found["latency"]["total_s"] == pytest.approx(0.16 + 16 * 0.6e-3)
    shares = {"senones_scored": 0.5, "senones_asked": 0.009, "frames_copied": None}
    assert found["shares"] == pytest.approx(shares)
    assert found["latency_s"] is None, "of the words of a stream"
    page = "\n".join(headline(found))
    assert "latency 170 ms: 160 ms block + 9.6 ms scoring" in page
    assert "50.0% of the senones scored, 0.9% of the senones active" in page
    with Session.open(finished) as recorded:
        found = report(recorded)
    assert found["latency"]["total_s"] is None
    assert set(found["shares"].values()) == {None}


MS = 1_000_000
FIRST = 100  # The run's number of the utterance's first frame
WORDS = (("a", FIRST + 2, 10), ("cat", FIRST + 14, 18), ("sat", FIRST + 32, 26))  # They end at 120, 320 and 580 ms


def stream(**changed: object) -> StreamFacts:
    """Six chunks of 100 ms; each takes 10 ms, the third 250 ms, of which other programs had 40."""
    arrived = [100, 200, 300, 400, 500, 600]
    started, shown = [100, 200, 300, 550, 560, 600], [110, 210, 550, 560, 570, 610]
    times = {"audio": arrived, "arrived": arrived, "started": started, "shown": shown, "other": [0, 0, 40, 0, 0, 0]}
    made = {f"{name}_ns": [ms * MS for ms in each] for name, each in times.items()}
    made |= {"chunk_ms": 100, "lookahead_frames": 3, "waited": True, "origin_ns": 1}
    made |= {
        "changes": [
            (1, 0, [("a", FIRST + 2, 9)]),
            (2, 1, [("can", FIRST + 14, 15)]),
            (3, 1, [("cat", FIRST + 14, 18)]),
            (4, 1, [("can", FIRST + 14, 18), ("sat", FIRST + 33, 10)]),
            (5, 1, [("cat", FIRST + 14, 18), ("sat", FIRST + 32, 26)]),
        ],
        "segments": [(5, 3, 0)],
    }
    return made | changed


def utterance(words: tuple[tuple[str, int, int], ...] = WORDS) -> Utterance:
    said = " ".join(word for word, _, _ in words)
    peaks = np.zeros((60, 2), np.int8)
    return Utterance(1, "u", "u.wav", FIRST, 60, 0.6, said, said, words, 1, (0,), 0, 3, True, peaks)


def test_the_parts_add_up_to_the_time_until_a_word_is_shown():
    found = word_latency.of_utterance(utterance(), stream())
    a, cat, sat = found.words
    # "a" ends at 120, its chunk arrives at 200, is taken at once and takes 10 ms.
    assert a.parts == pytest.approx((0.080, 0.0, 0.010, 0.0, 0.0))
    assert (a.shown_s, a.stable_s, a.final_s) == pytest.approx((0.090, 0.090, 0.490))
    # "cat" ends at 320 and is shown with the chunk of 400, which waits 150 ms for the slow one.
    assert cat.parts == pytest.approx((0.080, 0.150, 0.010, 0.0, 0.0))
    assert cat.shown_s == pytest.approx(0.560 - 0.320)
    # It was another word for a chunk, and is there to stay from the last one on.
    assert cat.stable_s == pytest.approx(0.610 - 0.320)
    # "sat" ends at 580 and is shown with the chunk before: negative emission.
    assert sat.parts == pytest.approx((0.020, 0.060, 0.010, 0.0, -0.100))
    assert sat.shown_s == pytest.approx(0.570 - 0.580)
    assert (a.rule, cat.rule, sat.rule) == (None, None, 0)
    # From the beginning of the first word, at 20 ms, until the first word is shown.
    assert (a.interim_s, cat.interim_s) == (pytest.approx(0.190), None)
    # "can", "cat", and "can" again are taken back; three of six words shown remain.
    assert (found.taken_back, found.shown, found.chunks, found.late) == (3, 6, 6, 2)
    assert (found.busy_s, found.other_s) == pytest.approx((0.300, 0.040))


def test_at_twice_real_time_the_end_of_a_word_comes_twice_as_soon():
    arrived = [ms * MS for ms in (50, 100, 150, 200, 250, 300)]
    shown = [ns + 10 * MS for ns in arrived]
    about = stream(arrived_ns=arrived, started_ns=arrived, shown_ns=shown, other_ns=[0] * 6)
    a, _, _ = word_latency.of_utterance(utterance(), about).words
    assert a.parts == pytest.approx((0.040, 0.0, 0.010, 0.0, 0.0))
    assert a.shown_s == pytest.approx(0.110 - 0.060)


def test_a_word_is_final_at_the_endpoint_of_its_segment():
    about = stream(segments=[(3, 2, 2), (5, 3, 0)], changes=[*stream()["changes"][:3], (5, 2, [WORDS[2]])])
    a, cat, sat = word_latency.of_utterance(utterance(), about).words
    assert (a.rule, cat.rule, sat.rule) == (None, 2, 0)
    assert (a.final_s, cat.final_s, sat.final_s) == pytest.approx((0.440, 0.240, 0.030))
    assert sat.interim_s == pytest.approx(0.610 - 0.320)


@each(
    "changed",
    [
        {"audio_ns": []},
        {"shown_ns": [0]},
        {"segments": []},
        {"segments": [(99, 99, 9)]},
        {"changes": [(99, 99, [("x", 0, 0)])]},
        {"audio_ns": [0] * 6, "arrived_ns": [0] * 6},
        {"other_ns": [1 << 50] * 6},
    ],
)
def test_a_strange_stream_gives_numbers_or_nothing(changed):
    found = word_latency.of_utterance(utterance(), stream(**changed))
    assert all(np.isfinite([*word.parts, word.stable_s, word.final_s]).all() for word in found.words)


def recorded(path: Path, about: StreamFacts, words: tuple[tuple[str, int, int], ...] = WORDS) -> Path:
    """A session of one utterance, with its stream."""
    recorder = Recorder(FakeClock())
    lane, block = recorder.lane("decode", decode=True), recorder.stage("decode.block", "decode")
    lane.put(block, 0, 10 * MS, 0, FIRST + 60)
    with SessionWriter(path, recorder, {}) as writer:
        writer.config(0, 0, {"stream": {"chunk_ms": 100}})
        number = writer.utterance("u", "u.wav", FIRST, 60, 0.6, "a cat sat", np.zeros((60, 2), np.int8))
        writer.utterance_done(number, " ".join(word for word, _, _ in words), words, 1, [0], 0, 3)
        writer.meta(f"stream/{number}", about)
    return path


def test_the_report_has_percentiles_parts_and_words(tmp_path):
    with Session.open(recorded(tmp_path / "a.asrs", stream())) as session:
        tree = report(session)
    about = tree["latency_s"]
    medians = {"first_shown": 0.090, "stable": 0.090, "final": 0.290, "time_to_final": 0.030, "first_interim": 0.190}
    assert {name: about[name]["p50"] for name in medians} == pytest.approx(medians)
    assert about["final"]["p99"] == pytest.approx(np.percentile([0.490, 0.290, 0.030], 99))
    assert about["parts_mean"] == pytest.approx(dict(zip(PARTS, (0.060, 0.070, 0.010, 0.0, -0.1 / 3), strict=True)))
    assert (about["words"], about["taken_back"], about["attack"], about["queue_from"]) == (3, 0.5, "queue", "compute")
    (row,) = tree["utterances"]
    assert [word["word"] for word in row["words"]] == ["a", "cat", "sat"]
    assert (row["words"][1]["first_shown_s"], row["words"][1]["queue_s"]) == pytest.approx((0.240, 0.150))
    (line,) = [line for line in headline(tree) if "first shown" in line]
    assert line.startswith("latency of 3 words, p50 / p90 / p99: first shown 90 / 210 / 237 ms, stable 90 / 250 / 286 ")
    assert line.endswith("50% taken back")


def test_chunks_wait_for_other_programs_that_have_the_processor_for_most_of_their_time(tmp_path):
    about = stream()
    busy = np.subtract(about["shown_ns"], about["started_ns"])
    for share, expected in ((0.4, "compute"), (0.6, "other_programs")):
        made = stream(other_ns=(share * busy).astype(int).tolist())
        with Session.open(recorded(tmp_path / f"{expected}.asrs", made)) as session:
            found = word_latency.as_dict(session)
        assert (found["attack"], found["queue_from"]) == ("queue", expected)


def test_the_planted_cause_is_the_one_that_is_named(tmp_path):
    """A slow chunk, a starved core, long chunks, a search that waits: each has its sentence."""
    arrived = [ms * MS for ms in (100, 200, 300, 400, 500, 600)]

    def planted(name: str, took_ms: int, other_ms: int, wait_ms: int = 0, late: int = 0) -> str:
        started = [ns + wait_ms * MS for ns in arrived]
        about = stream(
            arrived_ns=arrived,
            started_ns=started,
            shown_ns=[ns + took_ms * MS for ns in started],
            other_ns=[other_ms * MS] * 6,
            changes=[(min(1 + late, 5), 0, [WORDS[0]]), (min(3 + late, 5), 1, [WORDS[1]]), (5, 2, [WORDS[2]])],
        )
        with Session.open(recorded(tmp_path / f"{name}.asrs", about)) as session:
            return str(report(session)["latency_s"]["sentence"])

    for (name, *numbers), part, reason in (
        (("chunk", 10, 0), "buffering, 60 ms", "a word waits until its chunk of 100 ms is full."),
        (("slow", 90, 5), "compute, 85 ms", "a chunk of 100 ms takes 90 ms."),
        (("starved", 90, 80), "other programs, 80 ms", "takes 90 ms, and other programs had the processor for 89% of"),
        (("behind", 120, 0, 300), "queue, 300 ms", "5 of 6 chunks were not done when the next one had arrived;"),
        (("late", 10, 0, 0, 3), "emission, 167 ms", "the front end looks 30 ms ahead."),
    ):
        said = planted(name, *numbers)
        assert said.startswith(f"Largest part: {part} on average; ")
        assert reason in said


@pytest.fixture
def displayed(tmp_path, qtbot):
    """The view of the stream, with its one utterance in sight."""
    with view_on(LatencyView, recorded(tmp_path / "a.asrs", stream()), qtbot) as (view, playhead):
        look(view.axis, FIRST * 0.01, FIRST * 0.01 + 0.6)
        yield view, playhead


def test_a_bar_is_as_high_as_the_word_waited(displayed):
    view, _ = displayed
    model = view.model()
    a, cat, sat = model.words
    assert stack_of(a) == pytest.approx({"buffering": 80, "compute": 10})
    assert stack_of(cat) == pytest.approx({"buffering": 80, "queue": 150, "compute": 10})
    assert stack_of(sat) == pytest.approx({"endpoint": 30}), "shown before its end: it waited for its endpoint alone"
    assert model.quantiles == pytest.approx({"p50": 0.090, "p90": 0.210, "p99": 0.237})
    assert model.number == 3
    picture = pixels(view.plot)
    assert all(amount(picture, theme().color(COLORS[name]).name()) > 0 for name in ("queue", "buffering"))


def test_a_click_selects_the_word_and_the_figures_are_then_of_it(displayed):
    view, _ = displayed
    second = FIRST * 0.01 + 0.20
    view.plot.clicked.emit(QPointF(0.20 / 0.6 * view.plot.columns, 20))
    settle()
    assert view.axis.selected == pytest.approx((FIRST * 0.01 + 0.14, FIRST * 0.01 + 0.32))
    model = view.model()
    assert model.quantiles["p50"] == pytest.approx(0.240)
    assert "p50 240 ms" in view.summary()
    assert "Largest part: queue, 150 ms on average" in view.summary()
    lines = {line.name: line.value for line in view.readout(model, second)}
    assert (lines["first shown"], lines["queue"], lines["stable"]) == ("240", "150", "290")
    assert view.readout(model, FIRST * 0.01 + 0.005) == ()


def test_the_table_has_the_slowest_word_first(displayed):
    view, playhead = displayed
    headers, rows = view.table()
    assert headers[:5] == ["word", "first shown", "stable", "final", "buffering"]
    assert [row[0] for row in rows] == ["cat", "a", "sat"]
    assert [rows[2][headers.index(name)] for name in ("emission", "endpoint")] == ["-100", "40"]
    assert rows[0][headers.index("endpoint")] is None
    playhead.close()
    settle()
    assert view.table()[1] == []
    assert view.advice.full == ""


def test_a_session_without_a_stream_says_what_to_set(finished, qtbot):
    with view_on(LatencyView, finished, qtbot) as (view, _):
        assert view.remark.text == "This session was not decoded as a stream: set Chunk, under Streaming in the form."
        assert view.summary() == view.remark.text
        assert view.advice.text() == ""


def test_of_more_words_than_columns_the_slowest_are_drawn(tmp_path, qtbot):
    words = tuple((f"w{n}", FIRST + n // 20, 1) for n in range(1000))
    about = stream(changes=[(5, 0, list(words))], segments=[(5, 1000, 0)])
    path = recorded(tmp_path / "many.asrs", about, words)
    with view_on(LatencyView, path, qtbot) as (view, _):
        look(view.axis, 0.0, 100.0)
        assert len(view.model().words) <= view.plot.columns
        assert view.model().number == 1000
