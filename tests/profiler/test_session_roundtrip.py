import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiler_sessions import BLOCKS, FRAMES, GAUSSIANS_COST, ROOF_TABLE, record, roof

from profiler.costs import KERNEL_CALL, PATTERNS, Accesses, Cost, Linear
from profiler.machine.roofs.table import KERNEL, RoofTable
from profiler.session import reader
from profiler.session.files import read_header
from profiler.session.format import schema
from profiler.session.format.tables import Blocks
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import SPAN, Lane, Recorder
from tests.each import each
from tests.waiting import PATIENCE_S, wait_until

U16, U32 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)


def writer_of(path: Path) -> tuple[SessionWriter, int, Lane]:
    """A writer, and a stage and a lane of its recorder."""
    recorder = Recorder()
    writer = SessionWriter(path, recorder, {})
    return writer, recorder.stage("s", "search"), recorder.lane("a")


def test_everything_said_is_read_back(small):
    with Session.open(small) as session:
        assert (session.state, session.path, session.notes) == ("closed", small, [])
        assert session.meta["preset"] == "test"
        assert session.meta["recorder"]["ns_per_span"] > 0
        assert [s.name for s in session.stages.values()][:2] == ["decode.block", "score.gaussians"]
        assert session.stages[1].work == ("gaussians", "senones")
        lane = session.lanes[0]
        assert (lane.name, lane.decode, lane.recorded, lane.dropped) == ("decode", True, 1 + BLOCKS * 7, 0)
        assert len(session.spans) == lane.recorded
        assert [(c.epoch, c.first_frame) for c in session.configs] == [(0, 0), (1, FRAMES // 2)]
        assert session.configs[1].tree == {"threads": 1, "frames": {"skip": 2}}
        assert session.costs == {(1, 0): GAUSSIANS_COST, (1, 1): GAUSSIANS_COST}
        (marker,) = session.markers
        assert (marker.kind, marker.key, marker.value) == ("option", "frames.skip", 2)
        assert (marker.asked_frame, marker.applied_frame, marker.epoch) == (FRAMES // 2 - 1, FRAMES // 2, 1)
        (utterance,) = session.utterances
        assert utterance.reference == "hello world"
        assert utterance.words == (("hello", 2, 10), ("word", 15, 20))
        assert (utterance.errors, utterance.reference_words, utterance.epochs) == (1, 2, (0, 1))
        assert (utterance.done, utterance.complete) == (True, False)
        assert utterance.notes == ("mixed down from 2 channels",)
        assert utterance.part == {"channel": 1, "begin_s": 0.5}
        assert utterance.peaks.shape == (FRAMES, 2)
        assert session.sample_names == ["process.cpu_percent"]
        times, values = session.samples("process.cpu_percent")
        assert values.tolist() == list(map(float, range(BLOCKS)))
        assert (np.diff(times) > 0).all()
        assert session.calibration == ROOF_TABLE
        assert session.recheck.rate("gemm").median == 90e9
        assert session.spans.flags.writeable is False
        assert session.refresh() is False


def test_laws_and_the_roofs_of_each_phase_are_read_back(tmp_path):
    units = Linear(1.0, 2.0, (3.0, 4.0, 5.0))
    accesses = tuple(Accesses(units, size, p) for p in PATTERNS for size in (0.0, 8e6))
    writer, stage, _ = writer_of(tmp_path / "s.asrs")
    law = Cost(calls={KERNEL_CALL: units, "numpy": Linear(2.0)}, accesses=accesses)
    laws = {(stage, 0): law, (stage, 1): Cost({"gemm": units})}
    for key, cost in laws.items():
        writer.recorder.cost(*key, cost)
    # The second as older sessions have it.
    for phase, rate in {"start": 3e9, "lasting": 2e9, "end": 1e9, "no phase that is known": 4e9}.items():
        writer.calibration(RoofTable((roof(KERNEL, "tile", rate),)).rows(phase))
    writer.close()
    with Session.open(writer.path) as session:
        assert session.costs == laws
        assert (session.calibration.kernel("tile").median, session.recheck.kernel("tile").median) == (3e9, 1e9)


ROW = st.tuples(st.integers(0, 3), st.integers(0, 2**61), st.integers(0, 2**42), U32, U32, U32, U32, U32)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(ROW, max_size=30), min_size=1, max_size=3), st.integers(1, 4))
def test_any_spans_survive_the_file(lanes, blocks):
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.asrs"
        with SessionWriter(path, recorder, {}) as writer:
            for i in range(4):
                recorder.stage(f"stage {i}", "search")
            made = [recorder.lane(f"lane {i}") for i in range(len(lanes))]
            for i, (lane, rows) in enumerate(zip(made, lanes, strict=True)):
                for j, (stage, start, duration, *rest) in enumerate(rows):
                    lane.put(stage, start, start + duration, *rest)
                    if i == 0 and j % (blocks * 10) == 0:
                        writer._rounds._wake.set()
        with Session.open(path) as session:
            for lane, rows in zip(made, lanes, strict=True):
                got = session.spans[session.spans["lane"] == lane.id]
                assert [(s, t, d, *rest) for t, d, s, _, _, n, f, *w in got.tolist() for rest in [(f, n, *w)]] == rows


def test_schema_and_meta_are_in_the_main_file_at_once(tmp_path):
    path, main_only = tmp_path / "live.asrs", tmp_path / "copy.asrs"
    with SessionWriter(path, Recorder(), {"preset": "x"}):
        main_only.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(main_only.as_uri() + "?immutable=1", uri=True)) as connection:
        rows = dict(connection.execute("SELECT key, value FROM meta"))
    assert (rows["preset"], rows["state"]) == ('"x"', '"recording"')


def test_a_live_reader_sees_no_utterance_without_its_wave(tmp_path, monkeypatch):
    writer, _, _ = writer_of(tmp_path / "live.asrs")
    session, put = Session.open(writer.path), writer._rounds.put
    rows = "SELECT (SELECT count(*) FROM utterance) + (SELECT count(*) FROM peaks)"

    def written_at_once(*command: object) -> None:
        put(*command)
        stored.append(len(stored) + 1)
        with closing(sqlite3.connect(writer.path)) as connection:
            wait_until(lambda: connection.execute(rows).fetchone() == (len(stored),))
        session.refresh()

    stored: list[int] = []
    monkeypatch.setattr(writer._rounds, "put", written_at_once)
    for _ in range(2):
        writer.utterance("a", "a.wav", 0, 3, 0.03, None, np.ones((3, 2), np.int8))
    assert [len(utterance.peaks) for utterance in session.utterances] == [3, 3]
    writer.close()


def test_a_live_reader_sees_spans_once_and_in_order_through_merging(tmp_path):
    writer, stage, lane = writer_of(tmp_path / "live.asrs")
    lanes = [lane, writer.recorder.lane("b")]
    session = Session.open(writer.path)
    views = []
    # The last fill a block, and make one that is as long as readers take.
    rounds = [300] * 12 + [schema.BLOCK_RECORDS - 1, schema.MAX_BLOCK_RECORDS]
    at = 0
    for number, count in enumerate(rounds):
        for lane in lanes:
            for j in range(at, at + count):
                lane.put(stage, j, j + 1)
        at += count
        wait_until(lambda: not any(lane.waiting for lane in lanes))
        if number % 3:
            session.refresh()
            views.append((session.spans, session.spans.copy()))
    # However often lanes were drained: those that are not yet a block, and the rest of one that was cut.
    short, least = "SELECT sum(length(data)) FROM block WHERE length(data) < ? GROUP BY lane", schema.BLOCK_RECORDS
    with closing(sqlite3.connect(writer.path)) as connection:
        rests = connection.execute(short, (least * SPAN.itemsize,)).fetchall()
    assert all(rest < 2 * least * SPAN.itemsize for (rest,) in rests)
    writer.close()
    assert session.refresh() is True
    assert session.state == "closed"
    for lane in lanes:
        mine = session.spans[session.spans["lane"] == lane.id]
        assert mine["start_ns"].tolist() == list(range(at))
    assert all(np.array_equal(view, copy) for view, copy in views)


@each("choice", [[1, 3, 20, 400, 1000], [7000], [999, 1001]])
def test_small_blocks_are_merged_in_order(choice, tmp_path):
    rng = np.random.default_rng(0)
    blocks, ends = Blocks("block", "lane", SPAN.itemsize), {3: 0, 4: 0}
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        schema.create(connection)

        def stored(lane: int) -> list[np.ndarray]:
            query = "SELECT data FROM block WHERE lane=? ORDER BY end_record"
            return [np.frombuffer(data, SPAN) for (data,) in connection.execute(query, (lane,))]

        while ends[3] < 6500:
            news = {}
            for lane, end in ends.items():
                spans = np.zeros(int(rng.choice(choice)), SPAN)
                spans["start_ns"] = np.arange(end, end + len(spans))
                ends[lane] += len(spans)
                news[lane] = spans.tobytes()
            blocks.append(connection.execute, news)
            for lane, end in ends.items():
                assert sum(len(block) for block in stored(lane) if len(block) < 1000) < 1000
                assert blocks.end(lane) == end
        blocks.seal(connection.execute)
        for lane, end in ends.items():
            assert all(len(block) >= 1000 for block in stored(lane)[:-1])
            assert np.concatenate(stored(lane))["start_ns"].tolist() == list(range(end))


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY])
def test_a_file_being_folded(code, tmp_path, monkeypatch):
    writer, *_ = writer_of(tmp_path / "live.asrs")
    session = Session.open(writer.path)
    asked: list[Path] = []

    def refuse(path: Path, *, immutable: bool) -> sqlite3.Connection:
        asked.append(path)
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = code
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(reader, "connect_read_only", refuse)
        writer.marker("note", "meanwhile", 1)
        wait_until(lambda: session.refresh() or asked)
        assert session.markers == []
    wait_until(lambda: session.refresh() and session.markers)
    assert [marker.text for marker in session.markers] == ["meanwhile"]
    session.close()
    writer.close()


def test_updates_reach_a_live_reader(tmp_path):
    writer, stage, _ = writer_of(tmp_path / "live.asrs")
    session = Session.open(writer.path)
    utterance = writer.utterance("u", "u.wav", 0, 5, 0.05, None, np.zeros((5, 2), np.int8))
    first = writer.marker("user", "first", 1)
    writer.marker("note", "second", 2)
    wait_until(lambda: session.refresh() and len(session.utterances) > 0)
    assert not session.utterances[0].done
    writer.marker_applied(first, 3, 1)
    writer.utterance_partial(utterance, "so far", [("so", 0, 2)])
    writer.meta("wer", 0.25)
    wait_until(lambda: session.refresh() and session.meta.get("wer") == 0.25)
    assert [(m.text, m.applied_frame) for m in session.markers] == [("first", 3), ("second", None)]
    assert session.utterances[0].hypothesis == "so far"
    for law in (Cost({"fma": Linear(1)}), Cost({"fma": Linear(2)})):
        generation = session.generation
        writer.recorder.cost(stage, 0, law)
        wait_until(lambda law=law: session.refresh() and session.costs.get((stage, 0)) == law)
    assert session.generation > generation
    writer.close("stopped")
    assert session.refresh()
    assert session.state == "stopped"


READER = """
import sys, time
from profiler.session.reader import Session
session = Session.open(sys.argv[1])
print("open", flush=True)
while session.state == "recording":
    session.refresh()
    time.sleep(1 / 30)
print(session.state, len(session.spans), session.spans["start_ns"].tolist() == list(range(len(session.spans))))
"""


def test_closing_under_a_polling_reader_process_leaves_one_file(tmp_path):
    writer, stage, lane = writer_of(tmp_path / "live.asrs")
    reader = subprocess.Popen([sys.executable, "-c", READER, writer.path], stdout=subprocess.PIPE, text=True)
    assert reader.stdout.readline() == "open\n"
    for i in range(3000):
        lane.put(stage, i, i + 1)
        if i % 100 == 0:
            time.sleep(0.01)
    writer.close()
    assert reader.communicate(timeout=PATIENCE_S)[0] == "closed 3000 True\n"
    assert [p.name for p in tmp_path.iterdir()] == ["live.asrs"]
    assert read_header(writer.path) == (schema.VERSION, False)


def test_closing_under_a_lasting_reader(tmp_path, monkeypatch):
    monkeypatch.setattr("profiler.session.database.RELEASE_SECONDS", 0.1)
    path = tmp_path / "live.asrs"
    writer = record(path)
    stranger = sqlite3.connect(path)
    stranger.execute("BEGIN")
    stranger.execute("SELECT * FROM meta").fetchone()
    writer.close()
    stranger.close()
    with Session.open(path) as session:
        assert session.state == "closed"
        assert len(session.spans) == 1 + BLOCKS * 7


def test_two_writers_on_one_file_are_refused(tmp_path):
    path = tmp_path / "live.asrs"
    with SessionWriter(path, Recorder(), {}):
        for replace in (False, True):
            with pytest.raises(OSError, match="another asrscope is recording into this session"):
                SessionWriter(path, Recorder(), {}, replace=replace)
    with Session.open(path) as session:
        assert session.state == "closed"
    (tmp_path / "file").write_text("x")
    for where, sentence in (("missing/s", "does not exist"), ("", "is a folder"), ("file/s", "does not exist")):
        with pytest.raises(OSError, match=sentence) as caught:
            SessionWriter(tmp_path / where, Recorder(), {})
        assert "\n" not in str(caught.value)


def test_only_sessions_are_ever_replaced(tmp_path):
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work")
    foreign = tmp_path / "foreign.db"
    sqlite3.connect(foreign).execute("CREATE TABLE t(x)").connection.close()
    for path in (thesis, foreign):
        before = path.read_bytes()
        for replace in (False, True):
            with pytest.raises(OSError, match="not an asrscope session lies there and is not overwritten"):
                SessionWriter(path, Recorder(), {}, replace=replace)
        assert path.read_bytes() == before
    session = tmp_path / "s.asrs"
    with pytest.raises(RuntimeError), SessionWriter(session, Recorder(), {}):
        raise RuntimeError
    with Session.open(session) as opened:
        assert opened.state == "failed"
    with pytest.raises(OSError, match="ask to replace it"):
        SessionWriter(session, Recorder(), {})
    SessionWriter(session, Recorder(), {"preset": "second"}, replace=True).close()
    with Session.open(session) as opened:
        assert opened.meta["preset"] == "second"
        assert not len(opened.spans)


@each("name", ["a b#?%25&x=1 ü\n.asrs", "-s.asrs", ":memory:", "file:x?mode=ro", "plain"])
def test_odd_file_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record(Path(name)).close()
    assert os.listdir(tmp_path) == [name]
    with Session.open(name) as session:
        assert len(session.spans) == 1 + BLOCKS * 7


def test_names_that_are_no_text_are_stored_readably(tmp_path):
    odd = os.fsdecode(b"/speech/\xff one.wav")
    recorder = Recorder()
    with SessionWriter(tmp_path / "s.asrs", recorder, {"audio": [odd], odd: Path(odd)}) as writer:
        recorder.lane(odd)
        recorder.stage(odd, "search", (odd,))
        writer.utterance(odd, odd, 0, 1, 0.01, odd, np.zeros((1, 2), np.int8))
        writer.marker("error", odd, 0, odd, odd)
        writer.sample(1, {odd: 1.0})
        writer.config(0, 0, {"audio": odd})
    assert writer.failed is None
    with Session.open(tmp_path / "s.asrs") as session:
        (utterance,), (marker,) = session.utterances, session.markers
        texts = [*session.meta["audio"], utterance.name, utterance.path, marker.text, marker.value]
        texts += [*session.sample_names, *session.stages[0].work, session.configs[0].tree["audio"]]
    assert set(texts) == {"/speech/\\udcff one.wav"}


def test_bad_values_are_refused_where_they_are_said(tmp_path):
    with SessionWriter(tmp_path / "s.asrs", Recorder(), {}) as writer:
        with pytest.raises(TypeError):
            writer.meta("x", object())
        with pytest.raises(ValueError, match="int8"):
            writer.utterance("u", "u", 0, 1, 0.1, None, np.zeros((3, 2)))
        with pytest.raises(ValueError, match="closed, stopped or failed"):
            writer.close("done")
        writer.meta("numbers", {"a": np.float32(0.5), "b": np.arange(2), "c": float("nan"), "d": Path("x")})
        writer.marker("note", "numpy", np.int64(3))  # type: ignore[arg-type]
    assert writer.failed is None
    with Session.open(tmp_path / "s.asrs") as session:
        assert session.meta["numbers"] == {"a": 0.5, "b": [0, 1], "c": None, "d": "x"}
        assert session.markers[0].asked_frame == 3
