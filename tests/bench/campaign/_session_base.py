"""The sound sessions that are spoiled: with everything that a session may hold, and those of the bench."""

from __future__ import annotations

import functools
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from pipelines import config as settings
from pipelines.config import presets
from profiler.machine.describe import describe, versions
from tests.bench import _sessions

NAME: Final = "s.asrs"

FACTS: Final[dict[str, Any]] = {
    "asrscope_version": "0.1.0",
    "preset": "dnn",
    "argv": ["asrscope", "run", "--preset", "dnn"],
    "audio": ["/speech/one.flac", "/speech/two.flac"],
    "acoustic_models": ["a net of 5 layers"],
    "machine": describe(),
    "versions": versions(),
    "recorder": {
        "ns_per_put": 292.6,
        "ns_per_span": 497.1,
        "ns_per_lap": 381.4,
        "ns_per_counter_read": 900.0,
        "ns_per_counted_span": 2100.5,
        "counters": ["page_faults", "cycles"],
        "counters_absent": {"cache_misses": "not on this machine"},
    },
    "scoring": {"senones": 5126, "context": [10, 7]},
    "nets": {"base": {"context": [10, 7]}, "small": {"context": [7, 3]}},
    "drift": {"gemm": -0.02, "read 134217728": 0.1},
    "alternatives/1": {
        "nbest": [{"hypothesis": "word0 word1", "cost": 12.5}, {"hypothesis": "word0", "cost": 13}],
        "confidences": [0.9, 0.4, 1.0],
    },
}
"""What a run says in `meta`, every fact that a reader knows."""

ARMS: Final = {
    "arms": [{"name": "A", "epoch": 0, "set": {}}, {"name": "B", "epoch": 1, "set": {"block": 1}}],
    "repeat": 2,
    "warm_up": 1,
    "measured_from": 0,
}


class Base:
    """A sound session: its bytes, and those of its -wal (empty when it is closed)."""

    def __init__(self, path: Path) -> None:
        wal = path.with_name(path.name + "-wal")
        self.name = path.stem
        self.main = path.read_bytes()
        self.wal = wal.read_bytes() if wal.exists() else b""


@functools.cache
def full(interleaved: bool = False) -> bytes:
    """A sound, closed session in which every fact, setting and column is filled in."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / NAME
        pipeline = _sessions.record(path, 24, utterance_frames=96)
        writer = pipeline.writer
        writer.calibration(_sessions.ROOF_TABLE.rows())
        writer.calibration(_sessions.ROOF_TABLE.rows("end"))
        for number in range(len(_sessions.LEAVES)):
            cost = next(c for stage, _, c in pipeline.recorder.costs if stage == number + 4)
            pipeline.recorder.cost(number + 4, 1, cost)
        marker = writer.marker("option", "Net: small", 170, "dnn.net", "small")
        writer.marker_applied(marker, 192, 1)
        writer.marker("user", "noise", 100)
        facts = {**FACTS, **({"ab": ARMS} if interleaved else {})}
        for key, value in facts.items():
            writer.meta(key, value)
        writer.close()
        config = presets.load("dnn").config
        trees = [config, settings.replace(config, "dnn.net", "small")]
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("DELETE FROM config")
            for epoch, first, tree in ((0, 0, trees[0]), (1, 192, trees[1])):
                connection.execute(
                    "INSERT INTO config(epoch, first_frame, applied_ns, tree) VALUES(?,?,1,?)",
                    (epoch, first, json.dumps(settings.to_dict(tree))),
                )
            if interleaved:
                connection.execute(
                    "UPDATE utterance SET name='one', path='/speech/one.flac', epochs=printf('[%d]', id % 2)"
                )
        return path.read_bytes()


@functools.cache
def bases() -> tuple[Base, ...]:
    """The sessions that random damage is done to: small, larger, living, dead, kept, and the full ones."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = [Base(path) for path in _sessions.make_bases(folder)]
        for interleaved in (False, True):
            path = folder / f"full-{interleaved}.asrs"
            path.write_bytes(full(interleaved))
            found.append(Base(path))
        return tuple(found)
