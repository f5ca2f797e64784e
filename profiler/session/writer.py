"""Records a session: a thread that empties the lanes into the file every 50 ms.

Callers only put things into a queue or a lane's ring; the thread alone touches SQLite, so a slow commit never stops the
measured program. Each round is one commit. WAL with synchronous=NORMAL keeps what was committed when the process dies;
closing leaves one portable file.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from profiler.arrays import Array
from profiler.clock import wall_pair
from profiler.machine.describe import own_version
from profiler.session import database
from profiler.session.errors import SessionError, reason
from profiler.session.files import claim, identity, inode, own_files, recorded_here
from profiler.session.format import schema
from profiler.session.format.tables import REVISION, Tables, Word, text, to_json
from profiler.session.model import CounterTotal
from profiler.spans import Recorder, measure_ns_per_span

FLUSH_SECONDS: Final = 0.9 * schema.BLOCK_SECONDS  # The rest of BLOCK_SECONDS is left for the commit
MIN_WAIT_SECONDS: Final = 0.005  # Between rounds, so that a slow disk does not take the processor as well
CLOCK_SECONDS: Final = 10.0  # Between clock pairs: wall clocks are slewed by up to 500 ppm, 5 ms in this time
PRESENCE_SECONDS: Final = 1.0  # Between looks whether the file has its name: SQLite writes to removed files

SWITCH_SECONDS: Final = 0.001
"""While recording, a busy Python thread hands over the interpreter lock after this time (Python's own 5 ms
would, at two waits per SQL statement, make a round longer than what a crash may lose)."""


class Rounds:
    """The thread that carries out commands and empties the lanes into the file, a round every FLUSH_SECONDS.

    It starts at once and has the connection for itself. `failed`: what went wrong first; from then on nothing more is
    written, and the lanes are emptied anyway.
    """

    def __init__(self, path: Path, recorder: Recorder, connection: sqlite3.Connection) -> None:
        self.failed: SessionError | None = None
        self.tables = Tables(connection, recorder)
        self._path, self._recorder, self._connection = path, recorder, connection
        self._commands: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = queue.SimpleQueue()
        self._last_clock = self._last_presence = self._last_round = time.monotonic()
        self._wake = threading.Event()
        self._final_state = ""
        about = os.stat(path)
        self._file_key = (about.st_dev, about.st_ino)
        recorded_here.add(self._file_key)
        self._sides = [(side, inode(side)) for side in own_files(path)[1:3]]
        self._checkpointer = database.Checkpointer(path)
        self._switch_seconds = sys.getswitchinterval()
        sys.setswitchinterval(min(self._switch_seconds, SWITCH_SECONDS))
        self._thread = threading.Thread(target=self._run, name="session-writer", daemon=True)
        self._thread.start()

    def put(self, write: Callable[..., None], *arguments: Any) -> None:
        """Have the thread call `write`, a method of `tables`, before it writes spans that are put later."""
        self._commands.put((write, arguments))

    def end(self, state: str) -> None:
        """Write what is left, leave one file of that state and wait for it; the first call's state counts."""
        self._final_state = self._final_state or state
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._final_state:
            # Counted from the last round's beginning: against a busy Python thread every call of SQLite
            # waits up to 5 ms for the interpreter lock, and a round may take half of its time.
            now = time.monotonic()
            self._wake.wait(max(self._last_round + FLUSH_SECONDS - now, MIN_WAIT_SECONDS))
            self._last_round = time.monotonic()
            self._guarded(self._flush)
        self._guarded(self._flush)
        self._checkpointer.stop()
        self._guarded(self._finish)
        self._connection.close()
        recorded_here.discard(self._file_key)
        if inode(self._path) != self._file_key:
            # SQLite leaves them where the file is no longer beside them; all they held is in it.
            for side, key in self._sides:
                if key is not None and inode(side) == key:
                    side.unlink(missing_ok=True)
        sys.setswitchinterval(self._switch_seconds)

    def _guarded(self, step: Callable[[], None]) -> None:
        """Run a step of the thread; the first failure is kept, and the lanes are emptied anyway."""
        if self.failed is None:
            try:
                step()
                return
            except Exception as error:
                # Whatever it was, the thread must go on emptying the lanes.
                self._fail(error)
        for lane in self._recorder.lanes:
            lane.take()
        while not self._commands.empty():
            self._commands.get_nowait()

    def _fail(self, error: Exception) -> None:
        message = f"{self._path}: recording has stopped ({reason(error)}); what was recorded before stays in the file"
        self.failed = error if isinstance(error, SessionError) else SessionError(message)
        # A full disk often has room for this one word; where not, readers will say "crashed". The -wal is moved
        # into the main file at once: under another name that one is found without it.
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._connection.execute("UPDATE meta SET value='\"failed\"' WHERE key='state'")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _flush(self) -> None:
        now = time.monotonic()
        # Counts are read before the queue and the registers: whatever a span refers to was put
        # before the span, so it is in this transaction or an earlier one.
        lanes = [(lane, lane.waiting) for lane in list(self._recorder.lanes)]
        waiting = self._commands.qsize()
        pair_due = now - self._last_clock >= CLOCK_SECONDS
        if waiting or pair_due or self.tables.has_news(lanes, now):
            for _ in range(waiting):
                write, arguments = self._commands.get_nowait()
                write(*arguments)
            self.tables.write(lanes, now)
            if pair_due:
                self._last_clock = now
                self.tables.execute("INSERT INTO clock VALUES(?,?)", wall_pair(self._recorder.clock))
            self.tables.round.finish()
        if now - self._last_presence >= PRESENCE_SECONDS:
            self._last_presence = now
            self._check_presence()

    def _check_presence(self) -> None:
        if inode(self._path) != self._file_key:
            raise SessionError(
                f"{self._path}: the session file was removed or replaced while it was being recorded; "
                "recording has stopped, and a file that was only renamed holds what came until then"
            )

    def _finish(self) -> None:
        tables = self.tables
        tables.seal()
        tables.execute("INSERT INTO clock VALUES(?,?)", wall_pair(self._recorder.clock))
        tables.execute("UPDATE meta SET value=? WHERE key='state'", (to_json(self._final_state),))
        tables.round.finish()
        self._check_presence()
        database.finish(self._connection)


class SessionWriter(contextlib.AbstractContextManager["SessionWriter"]):
    """Records one session. All methods but `close` return at once.

    `meta` holds JSON values; session_id, created_wall, state, writer and recorder are filled in here. SessionError when
    the file cannot be made (it exists, somebody records into it, the folder is missing or cannot be written, the disk
    is full). Later failures set `failed` once; what was committed stays.
    """

    def __init__(
        self, path: str | os.PathLike[str], recorder: Recorder, meta: Mapping[str, Any], *, replace: bool = False
    ) -> None:
        self.path = Path(os.path.abspath(path))
        self.recorder = recorder
        self.session_id = str(meta.get("session_id") or uuid.uuid4())
        self._marker_ids = itertools.count(1)
        self._utterance_ids = itertools.count(1)
        description = {
            "asrscope_version": own_version(),
            **meta,
            "session_id": self.session_id,
            "created_wall": wall_pair(recorder.clock)[1] / 1e9,
            "state": "recording",
            "writer": identity(),
            "recorder": {**dict(meta.get("recorder") or {}), **measure_ns_per_span()},
        }
        rows = [(text(key), to_json(value)) for key, value in description.items()]
        claim(self.path, replace)
        self._rounds = Rounds(self.path, recorder, database.create(self.path, rows, wall_pair(recorder.clock)))
        self._tables = self._rounds.tables

    @property
    def failed(self) -> SessionError | None:
        return self._rounds.failed

    def config(self, epoch: int, first_frame: int, tree: Mapping[str, Any]) -> None:
        """Store the configuration applied from `first_frame` on, before the first span under it."""
        begun = {"epoch": epoch, "first_frame": first_frame, "applied_ns": self.recorder.clock()}
        self._rounds.put(self._tables.insert, "config", {**begun, "tree": to_json(tree)})

    def marker(self, kind: str, text: str, asked_frame: int, key: str | None = None, value: object = None) -> int:
        """Store a moment of interest (kind: option, user, error or note) and return its id."""
        marker = next(self._marker_ids)
        about = {"kind": kind, "text": text[: schema.LONGEST_MARK], "t_ns": self.recorder.clock()}
        asked = {"asked_frame": asked_frame, "key": key, "value": None if value is None else to_json(value)}
        self._rounds.put(self._tables.insert, "marker", {"id": marker, "revision": REVISION, **about, **asked})
        return marker

    def marker_applied(self, marker: int, applied_frame: int, epoch: int) -> None:
        """Say from which frame and under which epoch the marked option took effect."""
        self._rounds.put(self._tables.update, "marker", marker, {"applied_frame": applied_frame, "epoch": epoch})

    def utterance(
        self,
        name: str,
        path: str,
        first_frame: int,
        n_frames: int,
        audio_s: float,
        reference: str | None,
        peaks: Array,
        notes: Iterable[str] = (),
        part: Mapping[str, int | float | str | None] | None = None,
    ) -> int:
        """Store an utterance's beginning, return its id; `peaks` int8 [n, 2]; `notes`, `part` as in `Utterance`."""
        if peaks.ndim != 2 or peaks.shape[1] != 2 or peaks.dtype != np.int8:
            raise ValueError(f"peaks must be int8 [n, 2], not {peaks.dtype} {list(peaks.shape)}")
        utterance = next(self._utterance_ids)
        # First, since a reader keeps the peaks that it finds with an utterance.
        self._rounds.put(self._tables.insert, "peaks", {"utterance": utterance, "data": peaks.tobytes()})
        place = {"first_frame": int(first_frame), "n_frames": int(n_frames), "audio_s": float(audio_s)}
        about = {"name": name, "path": os.fspath(path), **place, "reference": reference}
        begun = {"words": "[]", "epochs": "[]", "done": 0, "notes": _notes(notes), "part": to_json(part or {})}
        self._rounds.put(self._tables.insert, "utterance", {"id": utterance, "revision": REVISION, **about, **begun})
        return utterance

    def utterance_partial(self, utterance: int, hypothesis: str, words: Iterable[Word]) -> None:
        """Store the latest words so far: (word, first_frame, n_frames); see PARTIAL_BYTES_PER_SECOND."""
        self._rounds.put(self._tables.keep_partial, utterance, hypothesis, list(words))

    def utterance_notes(self, utterance: int, notes: Iterable[str]) -> None:
        self._rounds.put(self._tables.update, "utterance", utterance, {"notes": _notes(notes)})

    def utterance_done(
        self,
        utterance: int,
        hypothesis: str,
        words: Iterable[Word],
        wall_ns: int,
        epochs: Iterable[int],
        errors: int | None,
        reference_words: int | None,
        complete: bool | None = None,
    ) -> None:
        """Store an utterance's final words, decode-lane time and epochs; `complete`: a grammar's sentence, or None."""
        self._rounds.put(self._tables.drop_partial, utterance)
        outcome = {"hypothesis": hypothesis, "words": to_json(list(words)), "errors": errors}
        times = {"wall_ns": int(wall_ns), "epochs": to_json(list(epochs)), "reference_words": reference_words}
        ended = {"done": 1, "complete": None if complete is None else int(complete)}
        self._rounds.put(self._tables.update, "utterance", utterance, outcome | times | ended)

    def sample(self, t_ns: int, values: Mapping[str, float | None]) -> None:
        """Store readings taken at `t_ns`; None and NaN are left out (absent, not zero)."""
        self._rounds.put(self._tables.keep_samples, int(t_ns), dict(values))

    def calibration(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Store measured roofs as `RoofTable.rows()` gives them."""
        for row in rows:
            self._rounds.put(self._tables.insert, "calibration", {column: row[column] for column in schema.CALIBRATION})

    def counters(self, totals: Iterable[CounterTotal]) -> None:
        self._rounds.put(self._tables.write_counters, list(totals))

    def meta(self, key: str, value: object) -> None:
        """Store or replace one JSON value of the session's description."""
        self._rounds.put(self._tables.execute, "INSERT OR REPLACE INTO meta VALUES(?,?)", (text(key), to_json(value)))

    def close(self, state: str = "closed") -> None:
        """Write what is left and leave one portable file; closing twice is harmless."""
        if state not in ("closed", "stopped", "failed"):
            raise ValueError(f"a session ends closed, stopped or failed, not {state!r}")
        self._rounds.end(state)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close("closed" if kind is None else "failed")


def _notes(notes: Iterable[str]) -> str:
    return to_json([note[: schema.LONGEST_MARK] for note in notes])


class NullWriter:
    """The journal of a run that keeps no session; with `NullLane` it shows what the instrument itself costs."""

    failed = None

    def marker(self, *_: object) -> int:
        return 0

    utterance = marker

    def meta(self, *_: object) -> None:
        """Nothing is kept."""

    config = marker_applied = utterance_partial = utterance_notes = utterance_done = meta
    sample = calibration = counters = meta

    def close(self, state: str = "closed") -> None:
        """The run ended."""


Journal = SessionWriter | NullWriter
