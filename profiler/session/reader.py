"""Reads a session: a replay of a closed file and the tail of a live one are the same thing.

Each refresh opens the file, reads what is new in one transaction and lets go, so a reader never stands in the way of
the writer's closing. Sessions come from strangers: only known tables are read, sizes and types are checked, and
whatever is wrong is one `SessionError` sentence.
"""

import os
import sqlite3
import time
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Final

import numpy as np

from profiler.arrays import Array
from profiler.machine.roofs.table import END, START, RoofTable
from profiler.session import facts
from profiler.session.database import Queries
from profiler.session.errors import Damaged, SessionError, code_of, reason
from profiler.session.files import alive, connect_read_only, own_files
from profiler.session.format import rows
from profiler.session.format.grow import Growing
from profiler.session.model import ConfigEpoch, CounterTotal, LaneInfo, Marker, StageInfo, Utterance, Utterances
from profiler.session.recover import Located, locate, settle
from profiler.spans import RECORD_BYTES, SPAN, Cost

MTIME_GRAIN_NS: Final = 50_000_000  # File times move in kernel ticks: so young a file may change without a trace
OWNER_SECONDS: Final = 1.0  # Without news, the recording process is checked so often for being alive
SAMPLE: Final = np.dtype([("t_ns", "<i8"), ("value", "<f8")])  # `schema.SAMPLE_LAYOUT` in numpy

UNHEARD_FRAMES: Final = 1 << 18
"""Frames (44 minutes) that may be decoded beyond those whose wave form is in the file: what is kept per frame
weighs more than a span that claims to have decoded thousands, and files may lie."""


class Session(AbstractContextManager["Session"]):
    """An open session. Everything is read-only; `refresh` makes the attributes grow.

    `path`, `meta` (key → JSON value), `state` ("recording", "closed", "stopped", "failed", "crashed"),
    `notes` (what the reader had to do to open it), `spans` (dtype SPAN [n], in order of arrival within each
    lane; arrays taken before stay valid), `stages` and `lanes` by id, `configs`, `costs` by (stage, epoch),
    `markers`, `utterances` (in order of their beginning; the same object until one is new or has changed),
    `sample_names`, `counters` by (lane, stage, epoch, name), `clock` ((mono_ns, wall_ns) pairs),
    `calibration`. `generation` grows when something already read has changed its meaning (a cost law or
    a roof), so that derived arrays start again.
    """

    def __init__(self, located: Located) -> None:
        self.path = located.path
        self.notes: list[str] = list(located.notes)
        self.meta: dict[str, Any] = {}
        self.state = "recording"
        self.stages: dict[int, StageInfo] = {}
        self.lanes: dict[int, LaneInfo] = {}
        self.configs: list[ConfigEpoch] = []
        self.costs: dict[tuple[int, int], Cost] = {}
        self.clock: list[tuple[int, int]] = []
        self.counters: dict[tuple[int, int, int, str], CounterTotal] = {}
        self.calibration = RoofTable()
        self.recheck = RoofTable()
        self.generation = 0
        self.markers: list[Marker] = []
        self.utterances = Utterances()
        self._located = located
        self._spans = Growing(SPAN)
        self.spans = self._spans.view
        self._seen: dict[int, int] = {}
        self._markers: dict[int, Marker] = {}
        self._utterances: dict[int, Utterance] = {}
        self._samples: dict[str, Growing] = {}
        self._samples_seen: dict[int, int] = {}
        self._decoded = 0
        self._heard = 0
        self._named = 0
        self._meta_text: dict[str, str] = {}
        self._calibration_rows: list[dict[str, Any]] = []
        tables = "cost", "config", "clock", "calibration", "counter", "revision"
        self._last = dict.fromkeys(tables, 0)
        self._signature: tuple[int, ...] | None = None
        self._owner_checked = time.monotonic()
        self._closed = False

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Session":
        """Open a session, live or finished; a dead writer's is settled first as "crashed". SessionError otherwise."""
        located = locate(Path(os.path.abspath(path)))
        session = cls(located)
        try:
            session._read()
        except SessionError:
            located.release()
            raise
        return session

    @property
    def sample_names(self) -> list[str]:
        return list(self._samples)

    def samples(self, name: str) -> tuple[Array, Array]:
        """Return (t_ns int64 [n], values float64 [n]) of a sampled quantity; KeyError if unknown."""
        view = self._samples[name].view
        return view["t_ns"], view["value"]

    def close(self) -> None:
        self._closed = True
        self._located.release()

    def __exit__(self, *_: object) -> None:
        self.close()

    def refresh(self) -> bool:
        """Read what is new, cheaply; True if anything is. SessionError when the file was damaged or removed."""
        if self._closed or self.state != "recording":
            return False
        signature = _signature_of(self._located.read_from)
        if signature is None or signature != self._signature:
            self._signature = signature
            return self._read()
        now = time.monotonic()
        if now - self._owner_checked < OWNER_SECONDS:
            return False
        self._owner_checked = now
        if alive(self.meta.get("writer")) is not False:
            return False
        changed = self._read_again()
        self.notes += [note for note in self._located.notes if note not in self.notes]
        return changed

    def _read(self, again: bool = False) -> bool:
        path = self._located.read_from
        try:
            with closing(connect_read_only(path, immutable=self._located.immutable)) as connection:
                connection.execute("BEGIN")
                return self._read_all(Queries(connection, path))
        except (Damaged, sqlite3.Error, OverflowError, MemoryError) as error:
            self._signature = None
            if isinstance(error, Damaged):
                raise SessionError(f"{self.path}: the session is damaged: {error}") from error
            if self._meta_text and code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                # The writer is just folding everything into one file; the next refresh sees it.
                return False
            if self._meta_text and code_of(error) == sqlite3.SQLITE_CANTOPEN and not again:
                return self._read_again()
            raise SessionError(f"{self.path}: the session cannot be read: {reason(error)}") from error

    def _read_again(self) -> bool:
        """Read once more after side files went away: the writer closed, or somebody recovered it."""
        try:
            settle(self._located)
        except (sqlite3.Error, Damaged) as error:
            raise SessionError(f"{self.path}: the session cannot be read: {reason(error)}") from error
        return self._read(again=True)

    def _read_all(self, db: Queries) -> bool:
        parts = self._read_meta, self._read_registers, self._read_spans, self._read_samples, self._read_changed
        news = [read(db) for read in parts]
        if self._decoded > self._heard + UNHEARD_FRAMES:
            raise Damaged("its spans decode more frames than its utterances have")
        if self._named > self._heard + UNHEARD_FRAMES:
            raise Damaged("its utterances have more frames than there is sound of")
        self.state = self._located.state or rows.state(self.meta.get("state"))
        return any(news)

    def _read_meta(self, db: Queries) -> bool:
        text = rows.texts(db.rows("SELECT key, value FROM meta"), "meta")
        if text == self._meta_text:
            return False
        for key, value in text.items():
            if self._meta_text.get(key) == value:
                continue
            fact = rows.json(value, f"meta {key:.40}")
            if facts.sound(key, fact):
                self.meta[key] = fact
                continue
            self.meta.pop(key, None)
            about = key.partition("/")[0]
            note = f"What the session says of its {about} is nothing that a recording writes, and is left out."
            if note not in self.notes:
                self.notes.append(note)
        self._meta_text = text
        return True

    def _read_registers(self, db: Queries) -> bool:
        news = False
        for row in db.rows("SELECT * FROM stage WHERE id>=? ORDER BY id", len(self.stages)):
            stage = rows.stage(row)
            if stage.id != len(self.stages):
                raise Damaged("the stages are not numbered without a gap")
            self.stages[stage.id] = stage
            news = True
        for row in db.rows("SELECT * FROM lane"):
            lane = rows.lane(row)
            news |= self.lanes.get(lane.id) != lane
            self.lanes[lane.id] = lane
            if len(self.lanes) > rows.MAX_LANES:
                raise Damaged(f"it has more than {rows.MAX_LANES} lanes")
        for row in db.later("config", "epoch, first_frame, applied_ns, tree", self._last):
            self.configs.append(rows.config(row))
            news = True
        for row in db.later("cost", "stage, epoch, law", self._last):
            key, cost = rows.cost(row)
            if key in self.costs:
                self.generation += 1
            self.costs[key] = cost
            news = True
        clock = "SELECT rowid, mono_ns, wall_ns FROM clock WHERE rowid>? ORDER BY rowid"
        for row in db.rows(clock, self._last["clock"]):
            self._last["clock"], mono_ns, wall_ns = rows.clock(row)
            self.clock.append((mono_ns, wall_ns))
        if measured := db.later("calibration", ", ".join(rows.CALIBRATION), self._last):
            self._calibration_rows += map(rows.calibration, measured)
            before = self.calibration
            self.calibration = RoofTable.from_rows(r for r in self._calibration_rows if r["phase"] == START)
            self.recheck = RoofTable.from_rows(r for r in self._calibration_rows if r["phase"] == END)
            self.generation += self.calibration != before
            news = True
        return news

    def _read_spans(self, db: Queries) -> bool:
        before = len(self._spans)
        if not before:
            # What the lanes claim, but never more than the file could hold.
            size = os.path.getsize(self._located.read_from)
            claimed = sum(lane.recorded for lane in self.lanes.values())
            self._spans.reserve(min(max(claimed, 0), size // RECORD_BYTES))
        highest_stage = max(self.stages, default=-1)
        moves = np.array([stage.group == "decode" for stage in self.stages.values()], bool)
        for lane in self.lanes:
            seen = self._seen.get(lane, 0)
            for data, end in db.blocks("block", "lane", lane, seen, RECORD_BYTES):
                records = np.frombuffer(data, SPAN)
                rows.check_spans(records, lane, highest_stage)
                self._spans.extend(records)
                self._decoded += int(records["frames"].sum(where=moves[records["stage"]]))
                self._seen[lane] = seen = end
            if seen != self.lanes[lane].recorded:
                raise Damaged(f"blocks of spans of lane {lane} are missing")
        self.spans = self._spans.view
        return len(self._spans) > before

    def _read_samples(self, db: Queries) -> bool:
        news = False
        for number, name in db.rows("SELECT id, name FROM sample_name"):
            kept = self._samples.setdefault(rows.text(name, "sample_name"), Growing(SAMPLE))
            seen = self._samples_seen.get(number, 0)
            for data, end in db.blocks("sample", "name", number, seen, SAMPLE.itemsize):
                kept.extend(np.frombuffer(data, SAMPLE))
                self._samples_seen[number] = end
                news = True
        return news

    def _read_changed(self, db: Queries) -> bool:
        """Read what is stored under revisions: markers, utterances and counters that are new or have changed."""
        last, before = self._last["revision"], (self._last["revision"], self._last["counter"])
        for row in db.rows(f"SELECT {rows.MARKER} FROM marker WHERE revision>?", last):
            revision, marker = rows.marker(row)
            self._last["revision"] = max(self._last["revision"], revision)
            self._markers[marker.id] = marker
        self.markers = [self._markers[number] for number in sorted(self._markers)]
        waves = "(SELECT data FROM peaks WHERE peaks.utterance=utterance.id)"
        changed = list(db.rows(f"SELECT {rows.UTTERANCE}, {waves} FROM utterance WHERE revision>?", last))
        for row in changed:
            earlier = self._utterances.get(rows.integer(row[1], "utterance"))
            peaks = rows.peaks(row[-1]) if earlier is None else earlier.peaks
            self._heard += len(peaks) if earlier is None else 0
            revision, utterance = rows.utterance(row[:-1], peaks)
            self._last["revision"] = max(self._last["revision"], revision)
            self._utterances[utterance.id] = utterance
            self._named = max(self._named, utterance.end_frame)
        if changed:
            self.utterances = Utterances(self._utterances[number] for number in sorted(self._utterances))
        for row in db.rows("SELECT * FROM counter WHERE revision>?", self._last["counter"]):
            revision, total = rows.counter(row)
            self._last["counter"] = max(self._last["counter"], revision)
            self.counters[total.lane, total.stage, total.epoch, total.name] = total
        return before != (self._last["revision"], self._last["counter"])


def _signature_of(path: Path) -> tuple[int, ...] | None:
    """Return sizes and times of a session's files, or None where they cannot prove that nothing is new."""
    signature: list[int] = []
    now = time.time_ns()
    try:
        for file in own_files(path)[:2]:
            stat = os.stat(file)
            if abs(now - stat.st_mtime_ns) < MTIME_GRAIN_NS:
                return None
            signature += (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    except OSError:
        return None
    return tuple(signature)
