"""Files from strangers: whatever is in them, opening is a session or one sentence, and analysis holds."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from profiler_sessions import KEPT, edit

from profiler.analysis.breakdown import breakdown
from profiler.analysis.track import CostTrack
from profiler.costs import MOST_ACCESSES
from profiler.export import chrome_trace, speedscope, table
from profiler.machine.describe import own_version
from profiler.session.errors import Damaged, SessionError
from profiler.session.format import schema
from profiler.session.reader import Session
from profiler.spans import SPAN
from tests.bench.campaign import _use
from tests.each import each


def sentence(path: Path) -> str:
    """Open `path`, which must be refused, and return the sentence after checking its form."""
    with pytest.raises(SessionError) as caught:
        Session.open(path).close()
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text.replace(str(path), "")
    assert len(text) < len(str(path)) + 250
    return text


def test_what_is_no_session_is_refused_in_a_sentence(tmp_path):
    assert "no such file" in sentence(tmp_path / "absent.asrs")
    assert "a folder" in sentence(tmp_path)
    path = tmp_path / "file"
    for content, words in (
        (b"", "empty"),
        (b"hello, I am a letter", "not a session file"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 200, "not a session file"),
        (b"SQLite format 3\0", "cut off"),
        (b"\0" * 4096, "not a session file"),
    ):
        path.write_bytes(content)
        assert words in sentence(path)
    path = tmp_path / "young.asrs"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        assert path.stat().st_size > 0
        assert "nothing has been written to this file yet" in sentence(path)
        connection.execute("CREATE TABLE meta(key, value)")
        connection.execute("PRAGMA wal_checkpoint")
        assert "another program" in sentence(path)


def test_a_newer_session_says_both_versions_and_what_to_do(small):
    edit(small, "PRAGMA user_version = 7")
    text = sentence(small)
    assert all(words in text for words in ("version 7", f"version {schema.VERSION}", "newer asrscope"))


def test_cut_off_files_are_refused_at_any_length(small, tmp_path):
    whole, path = small.read_bytes(), tmp_path / "cut.asrs"
    lengths = [1, 15, 16, 99, 100, 101, 4095, 4096, 4097, len(whole) - 1]
    for length in lengths + random.Random(1).sample(range(len(whole)), 30):
        path.write_bytes(whole[:length])
        sentence(path)


INTRUDERS = {
    "view": ["ALTER TABLE sample RENAME TO other", "CREATE VIEW sample AS SELECT * FROM other"],
    "trigger": ["CREATE TRIGGER t AFTER UPDATE ON meta BEGIN DELETE FROM block; END"],
    "extra table": ["CREATE TABLE notes(x)"],
    "virtual table": ["CREATE VIRTUAL TABLE v USING fts5(x)"],
    "missing table": ["DROP TABLE cost"],
    "other columns": ["DROP TABLE cost", "CREATE TABLE cost(id INTEGER PRIMARY KEY, x)"],
    "generated": ["ALTER TABLE meta ADD COLUMN g TEXT GENERATED ALWAYS AS (hex(value))"],
}


@pytest.mark.parametrize("name", INTRUDERS)
def test_a_schema_that_is_not_ours_is_refused(name, small):
    edit(small, *INTRUDERS[name])
    assert "damaged" in sentence(small)


def test_a_trigger_in_a_crashed_session_is_refused_before_anything_is_written(small):
    edit(
        small,
        "UPDATE meta SET value='\"recording\"' WHERE key='state'",
        "UPDATE meta SET value='{}' WHERE key='writer'",
        *INTRUDERS["trigger"],
        "PRAGMA journal_mode = WAL",
    )
    before = small.read_bytes()
    keeper = sqlite3.connect(small)
    keeper.execute("SELECT * FROM meta").fetchone()
    assert "damaged" in sentence(small)
    keeper.close()
    assert small.read_bytes() == before


ACCESS = '[[1e9, 0, 0, 0, 0], 1e18, "chase"]'


def law_with(values: str, name: str) -> str:
    """Give every cost law these values under a name."""
    return f"UPDATE cost SET law = json_set(law, '$.{name}', json('{values}'))"


LIES = {
    "block of no whole records": "UPDATE block SET data = x'00112233'",
    "empty block": "UPDATE block SET data = x''",
    "huge block": f"UPDATE block SET data = zeroblob({42 * (schema.MAX_BLOCK_RECORDS + 1)})",
    "block from nowhere": "UPDATE block SET end_record = 9000000000000000000",
    "negative end": "UPDATE block SET end_record = 3",
    "state": "UPDATE meta SET value='\"dreaming\"' WHERE key='state'",
    "meta is no JSON": "UPDATE meta SET value='{' WHERE key='preset'",
    "deep JSON": "UPDATE meta SET value=replace(hex(zeroblob(50000)), '0', '[') WHERE key='preset'",
    "deep JSON everywhere": "UPDATE meta SET value=replace(hex(zeroblob(50000)), '0', '[')",
    "stage group": "UPDATE stage SET grp='cooking'",
    "stage work": "UPDATE stage SET work='[1]'",
    "stage number": "UPDATE stage SET id=id+70000",
    "cost": "UPDATE cost SET law='{\"operations\": 1}'",
    "cost numbers": "UPDATE cost SET law=replace(law, '100', '1e999')",
    "cost accesses": law_with('{"kernel": 1}', "accesses"),
    "cost accesses without end": law_with(f"[{', '.join([ACCESS] * (MOST_ACCESSES + 1))}]", "accesses"),
    "cost calls": law_with("[1]", "calls"),
    "cost calls of no count": law_with('{"numpy": [1]}', "calls"),
    "cost accesses of no pattern": law_with('[[[0, 0, 0, 0, 0], 8, "hop"]]', "accesses"),
    "cost accesses of no size": law_with('[[[0, 0, 0, 0, 0], -8, "chase"]]', "accesses"),
    "config": "UPDATE config SET tree='[]'",
    "words": "UPDATE utterance SET words='[[1,2,3]]'",
    "frames": "UPDATE utterance SET n_frames=-5",
    "peaks": "UPDATE peaks SET data=x'010203'",
    "sample of no whole records": "UPDATE sample SET data=x'00'",
    "samples out of order": "UPDATE sample SET end_record=99",
    "marker value": "UPDATE marker SET value='nope'",
    "text is not UTF-8": "UPDATE meta SET value=CAST(x'22fffe22' AS TEXT) WHERE key='preset'",
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_in_a_column_is_refused(name, small):
    edit(small, LIES[name])
    sentence(small)


ODDITIES = {
    "no size": "UPDATE calibration SET bytes = 0",
    "negative size": "UPDATE calibration SET bytes = -5",
    "same size": "UPDATE calibration SET bytes = 4096",
    "tiny roofs": "UPDATE calibration SET median = 1e-300, low = 1e-300, high = 1e-300",
    "great roofs": "UPDATE calibration SET median = 1e300",
    "no roofs": "DELETE FROM calibration",
    "many accesses": law_with(f"[{', '.join([ACCESS] * MOST_ACCESSES)}]", "accesses"),
    "accesses of nothing": law_with("[]", "accesses"),
    "great costs": "UPDATE cost SET law = replace(law, '5000.0', '1e23')",
    "no costs": "DELETE FROM cost",
    "no threads": 'UPDATE config SET tree = \'{"threads": "many"}\'',
    "no configs": "DELETE FROM config",
    "no clock": "DELETE FROM clock",
    "no recorder": "UPDATE meta SET value='[]' WHERE key='recorder'",
    "infinite sample": f"UPDATE sample SET data = x'{'00' * 14 + 'f07f'}', end_record = 1",
    "sample of no name": "DELETE FROM sample_name",
    "no decode lane": "UPDATE lane SET decode = 0",
    "everything is a tile": "UPDATE stage SET grp = 'decode'",
    "nothing is a tile": "UPDATE stage SET grp = 'search'",
    "no utterances": "DELETE FROM utterance",
    "empty utterance": "UPDATE utterance SET n_frames = 0",
}


@pytest.mark.parametrize("name", ODDITIES)
def test_an_oddity_that_means_something_is_borne(name, small, tmp_path):
    edit(small, ODDITIES[name])
    assert _use.use(small, tmp_path, verbs=False) is None


def change_spans(path: Path, change: Callable[[np.ndarray], None]) -> None:
    """Change the spans of a session of one block behind the program's back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        number, data = connection.execute("SELECT id, data FROM block").fetchone()
        spans = np.frombuffer(data, SPAN).copy()
        change(spans)
        connection.execute("UPDATE block SET data=? WHERE id=?", (spans.tobytes(), number))


@pytest.mark.parametrize(
    ("field", "value"), [("stage", 99), ("lane", 5), ("duration_ns", -1), ("duration_ns", 2**62), ("start_ns", -5)]
)
def test_a_span_that_cannot_be_is_refused(field, value, small):
    change_spans(small, lambda spans: spans[field].__setitem__(3, value))
    assert "impossible" in sentence(small)


def test_frames_far_away_do_not_take_all_memory(small, tmp_path):
    def lie(spans: np.ndarray) -> None:
        spans["first_frame"][5:] += np.uint32(2**31)
        spans["frames"][9] = 2**32 - 1

    change_spans(small, lie)
    with Session.open(small) as session:
        track = CostTrack()
        track.update(session)
        assert track.misplaced > 0
        assert track.n_frames < 100
    assert _use.use(small, tmp_path, verbs=False) is None


def test_names_from_a_session_are_data_in_exports(small, tmp_path):
    edit(small, "UPDATE stage SET name='=cmd|''/c calc''!A1\"\n,' WHERE name='search.emit'")
    with Session.open(small) as session:
        for module in (chrome_trace, speedscope, table):
            module.write(session, tmp_path / module.__name__)
    for module in (chrome_trace, speedscope):
        json.loads((tmp_path / module.__name__).read_text())
    assert "\"'=cmd" in (tmp_path / table.__name__).read_text()


def test_kept_files_say_what_they_said_then():
    with Session.open(KEPT / "v1.asrs") as session:
        parts = breakdown(session)
        assert (len(session.spans), parts.setup_ns) == (85, 5_000_000)
        assert parts.wall_ns == 12 * 11_000 + 4 * sum(2_000 + block for block in range(12))
        assert [row.name for row in parts.stages] == ["score.gaussians", "search.emit"]
        (utterance,) = session.utterances
        assert (utterance.hypothesis, utterance.complete, utterance.notes) == ("hello word", None, ())
    with Session.open(KEPT / "v1-0.1.0.asrs") as session:
        parts = breakdown(session)
        assert session.meta["asrscope_version"] == "0.1.0"
        assert (len(session.spans), parts.wall_ns, parts.audio_s) == (83, 20_176_610, 1.314625)
        assert parts.stages[-1].name == "search.backtrace"
        (utterance,) = session.utterances
        assert (utterance.hypothesis, utterance.errors) == ("yes of course", 0)
    with Session.open(KEPT / "v2-0.1.0.asrs") as session:
        sound, other = session.utterances
        assert sound.notes[0] == "mixed down from 2 channels"
        assert (sound.complete, other.complete, other.notes) == (True, False, ())
    assert (KEPT / f"v{schema.VERSION}-{own_version()}.asrs").exists()


@each("path", sorted(KEPT.glob("*.asrs")))
def test_every_kept_file_is_of_the_schema_it_is_called_after(path):
    version, *_ = path.stem.removeprefix("v").split("-")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (int(version),)
    with Session.open(path) as session:
        parts = breakdown(session)
        assert session.state == "closed"
        assert sum(parts.categories.values()) == parts.wall_ns > 0
        assert sum(row.time_ns for row in parts.stages) <= parts.wall_ns
        assert all(u.done for u in session.utterances)


def test_an_older_session_is_migrated_in_a_copy(tmp_path):
    older = Path(shutil.copy(KEPT / "v1.asrs", tmp_path / "older.asrs"))
    before = older.read_bytes()
    with Session.open(older) as session:
        assert (session.path, session.state) == (older, "closed")
        assert "version 1" in session.notes[0]
        assert _use.use(older, tmp_path, verbs=False) is None
    assert older.read_bytes() == before
    # It is laid out as a new one then.
    with closing(sqlite3.connect(older, isolation_level=None)) as file:
        with pytest.raises(Damaged):
            schema.check(file, schema.VERSION)
        schema.migrate(file, 1)
        schema.check(file, schema.VERSION)
    # A code in an older session does not run.
    older.write_bytes(before)
    edit(older, *INTRUDERS["trigger"])
    assert "damaged" in sentence(older)
    assert older.exists()
