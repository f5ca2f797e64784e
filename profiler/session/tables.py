"""What a recording's thread writes in each round: the statements behind `SessionWriter`.

All of it happens inside a transaction that the writer opens and commits.
"""

import itertools
import sqlite3
import struct
from collections.abc import Sequence
from typing import Any, Final

from profiler.session import schema
from profiler.session.blocks import Blocks
from profiler.session.encode import text, to_json
from profiler.session.model import CounterTotal
from profiler.spans import RECORD_BYTES, Recorder

PARTIAL_BYTES_PER_SECOND: Final = 200_000
"""Partial words are stored again whole, so those of an utterance as long as a lecture are stored less often."""

REVISION: Final = object()
"""Stands for the next revision, which is given in the order of writing: a follower asks for what is newer
than it knows, so none may become visible after a higher one."""

Word = tuple[str, int, int]


class Tables:
    """The tables of one session being recorded, and what is not yet in them."""

    def __init__(self, connection: sqlite3.Connection, recorder: Recorder) -> None:
        self._connection = connection
        self._recorder = recorder
        self._revision = itertools.count(1)
        self._counter_revision = 0
        self._stages_written = 0
        self._costs_written = 0
        self._lanes_written: dict[int, tuple[int, int]] = {}
        self._spans = Blocks("block", "lane", RECORD_BYTES)
        self._samples = Blocks("sample", "name", struct.calcsize(schema.SAMPLE_LAYOUT))
        self._sample_names: dict[str, int] = {}
        self._readings: dict[int, bytes] = {}
        self._partials: dict[int, tuple[str, list[Word]]] = {}
        self._partial_due: dict[int, float] = {}

    def has_news(self, lanes: Sequence[tuple[Any, int]], now: float) -> bool:
        """Whether anything is to be written for lanes with so many spans waiting, or by itself at `now`."""
        return (
            len(self._recorder.stages) > self._stages_written
            or len(self._recorder.costs) > self._costs_written
            or any(now >= self._partial_due.get(number, 0.0) for number in self._partials)
            or any(
                count or self._lanes_written.get(lane.id, (-1, -1))[1] != lane.dropped
                for lane, count in lanes
            )
        )

    def write(self, lanes: Sequence[tuple[Any, int]], now: float) -> None:
        """Write everything that has come since the last round, `count` spans of each lane."""
        self.write_partials(now)
        self._write_registers()
        self._write_samples()
        self._write_spans(lanes)

    def seal(self) -> None:
        """Write what was put off and leave no small blocks."""
        self.write_partials(float("inf"))
        self._spans.seal(self._connection)
        self._samples.seal(self._connection)

    def execute(self, statement: str, values: Sequence[Any]) -> None:
        """Run a statement, REVISION among its values standing for the next one."""
        self._connection.execute(
            statement, [next(self._revision) if value is REVISION else value for value in values]
        )

    def keep_partial(self, utterance: int, hypothesis: str, words: list[Word]) -> None:
        """Keep the words so far of an utterance until they are due."""
        self._partials[utterance] = hypothesis, words

    def drop_partial(self, utterance: int) -> None:
        """Forget the words so far: the final ones are there."""
        self._partials.pop(utterance, None)
        self._partial_due.pop(utterance, None)

    def write_partials(self, now: float) -> None:
        """Store the words so far that are due at `now`, s (infinity: all)."""
        for utterance in list(self._partials):
            if now >= self._partial_due.get(utterance, 0.0):
                hypothesis, words = self._partials.pop(utterance)
                said = to_json(words)
                self.execute(
                    "UPDATE utterance SET revision=?, hypothesis=?, words=? WHERE id=?",
                    (REVISION, text(hypothesis), said, utterance),
                )
                self._partial_due[utterance] = now + len(said) / PARTIAL_BYTES_PER_SECOND

    def _write_registers(self) -> None:
        for stage in self._recorder.stages[self._stages_written :]:
            self._connection.execute(
                "INSERT INTO stage VALUES(?,?,?,?)",
                (stage.id, text(stage.name), stage.group, to_json(stage.work)),
            )
            self._stages_written += 1
        for stage_id, epoch, cost in self._recorder.costs[self._costs_written :]:
            self._connection.execute(
                "INSERT INTO cost(stage, epoch, law) VALUES(?,?,?)",
                (stage_id, epoch, to_json(cost.as_dict())),
            )
            self._costs_written += 1

    def _write_spans(self, lanes: Sequence[tuple[Any, int]]) -> None:
        taken = {
            lane.id: lane.take(min(count, schema.MAX_BLOCK_RECORDS))
            for lane, count in lanes
            if count
        }
        self._spans.append(self._connection, taken)
        for lane, _ in lanes:
            counts = (self._spans.end(lane.id), lane.dropped)
            if self._lanes_written.get(lane.id) != counts:
                self._connection.execute(
                    "INSERT OR REPLACE INTO lane VALUES(?,?,?,?,?,?)",
                    (lane.id, text(lane.name), text(lane.kind), int(lane.decode), *counts),
                )
                self._lanes_written[lane.id] = counts

    def keep_sample(self, name: str, t_ns: int, value: float) -> None:
        """Keep a reading for this round's blocks."""
        number = self._sample_names.get(name)
        if number is None:
            number = len(self._sample_names)
            self._connection.execute("INSERT INTO sample_name VALUES(?,?)", (number, text(name)))
            self._sample_names[name] = number
        record = struct.pack(schema.SAMPLE_LAYOUT, t_ns, value)
        self._readings[number] = self._readings.get(number, b"") + record

    def _write_samples(self) -> None:
        self._samples.append(self._connection, self._readings)
        self._readings.clear()

    def write_counters(self, totals: Sequence[CounterTotal]) -> None:
        """Store totals; a later one replaces an earlier one."""
        # Numbered here, in the order of writing: a follower asks for what is newer than it knows.
        self._counter_revision += 1
        self._connection.executemany(
            "INSERT OR REPLACE INTO counter VALUES(?,?,?,?,?,?,?)",
            [
                (
                    t.lane,
                    t.stage,
                    t.epoch,
                    text(t.name),
                    t.value,
                    text(t.source),
                    self._counter_revision,
                )
                for t in totals
            ],
        )
