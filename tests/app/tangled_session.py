"""A SYNTHETIC session with every fault that a session can record, written by the real `SessionWriter`.

On a fake clock: utterances longer than their frames, one decoded under two configurations, one without
reference words, one that was stopped; a device next to the decode lane; spans and counter readings lost.
"""

import sqlite3
from pathlib import Path

import numpy as np

from pipelines.audio import word_errors as wer
from profiler.device.time import DEVICE, TRANSFER_WORK
from profiler.machine.roofs.table import Roof, RoofTable
from profiler.session.writer import SessionWriter
from profiler.spans import Cost, Lane, Linear, Recorder
from tests.fake_clock import FakeClock

BLOCK, FRAMES = 16, 48
BEYOND_S = 0.018  # What an utterance is longer than its frames
DROPPED, MISSED, MISPLACED = 3, 2, 1
NS_PER_READING = 150.0

SPOKEN = (
    ("A well-known (cat)!", ["a", "well", "known", "cat(2)"], [0]),
    ("Caf\u00e9 STRASSE, well", ["cafe\u0301", "strasse", "<sil>", "known"], [0]),
    ("two of them", ["two", "them"], [0, 1]),
    ("...", ["um", "so"], [1]),
    ("and then nothing", ["and"], [1]),
)
"""Reference, hypothesis and configurations of each utterance; the last was stopped."""

ROOF_TABLE = RoofTable(
    (
        Roof("rate", "gemm", "float32", 1, 0, 100e9, 99e9, 104e9, "op/s"),
        Roof("bandwidth", "read", "float32", 1, 1 << 20, 97e9, 95e9, 99e9, "B/s"),
        Roof("bandwidth", "read", "float32", 1, 1 << 28, 33e9, 31e9, 36e9, "B/s"),
    )
)


def write(path: Path) -> Path:
    """Write the session and return its path."""
    clock = FakeClock(1_000_000_000)
    recorder = Recorder(clock)
    meta = {"preset": "tangled", "recorder": {"ns_per_counted_span": NS_PER_READING}}
    writer = SessionWriter(path, recorder, meta)
    stage = recorder.stage
    lane = recorder.lane("decode", decode=True)
    stream = recorder.lane("stream", kind=DEVICE)
    ids = {
        "features": stage("frontend.mfcc", "frontend"),
        "gaussians": stage("score.gaussians", "scoring", ("gaussians", "senones")),
        "emit": stage("search.emit", "search", ("tokens", "arcs", "senones")),
        "copy": stage("transfer.to device", "transfer", TRANSFER_WORK),
        "waiting": stage("transfer.to device.wait", "transfer"),
        "latency": stage("device.latency", "overhead"),
        "prepare": stage("decode.utterance", "prepare"),
        "block": stage("decode.block", "decode"),
        "setup": stage("setup.model", "setup"),
        "idle": stage("idle.pace", "idle"),
    }
    for epoch in (0, 1):
        law = Linear(per_work=(78.0, 0.0, 0.0))
        cost = Cost({"gemm": law}, Linear(fixed=5e3), Linear(fixed=9e3), working_set_bytes=64e6)
        recorder.cost(ids["gaussians"], epoch, cost)
        writer.config(epoch, 2 * FRAMES + BLOCK if epoch else 0, {"block": BLOCK, "frames": epoch})
    writer.calibration(ROOF_TABLE.rows())
    writer.calibration(ROOF_TABLE.rows("end"))
    writer.meta("drift", {"gemm": -0.04})
    writer.meta("counters_missed", MISSED)
    start = clock()
    lane.put(ids["setup"], start, clock.advance(5_000_000))
    lane.put(ids["latency"], clock(), clock.advance(70_000))  # of the warm-up, in no tile

    frame = 0
    for number, (said, heard, epochs) in enumerate(SPOKEN):
        stopped = number == len(SPOKEN) - 1
        peaks = np.full((FRAMES, 2), 7, np.int8)
        length = FRAMES * 0.01 + BEYOND_S
        utterance = writer.utterance(f"u{number}", f"/u{number}.wav", frame, FRAMES, length, said, peaks)
        begun = clock()
        lane.put(ids["features"], begun, clock.advance(FRAMES * 3_001), frame, FRAMES)
        lane.put(ids["prepare"], begun, clock.advance(700), frame, FRAMES)
        spent, first = clock() - begun, frame
        for at in range(0, BLOCK if stopped else FRAMES, BLOCK):
            lane.epoch = epochs[min(at // BLOCK, len(epochs) - 1)]
            if len(epochs) > 1 and at == BLOCK:
                mark = writer.marker("option", "skip every second frame", frame, "frames.skip", 2)
                writer.marker_applied(mark, frame, 1)
            begun = clock()
            _block(lane, stream, clock, ids, frame)
            spent += clock() - begun
            frame += BLOCK
            lane.put(ids["idle"], clock(), clock.advance(3_000), frame, 0)
        words = [(word, first + 10 * i, 8) for i, word in enumerate(heard)]
        text = " ".join(heard)
        if stopped:
            writer.utterance_partial(utterance, text, words)
        else:
            found = wer.count(said, text)
            # As older versions scored them: also against nothing.
            score = (found.errors, found.reference_words) if len(epochs) == 1 else (None, None)
            writer.utterance_done(utterance, text, words, spent, epochs, *score)
    writer.sample(clock(), {"process.cpu_percent": 80.0})
    writer.close("stopped")
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE lane SET dropped=? WHERE name='decode'", (DROPPED,))
    database.close()
    return path


def _block(lane: Lane, stream: Lane, clock: FakeClock, ids: dict[str, int], frame: int) -> None:
    """One block: scores, a copy that the host waits for in part, search, and what was misplaced."""
    start = clock()
    lane.put(ids["gaussians"], start, clock.advance(90_007), frame, BLOCK, 48_000, 3_200)
    sent = clock()
    lane.put(ids["waiting"], sent, clock.advance(4_000), frame, BLOCK)
    lane.put(ids["latency"], clock(), clock.advance(900), frame, BLOCK)
    stream.put(ids["copy"], sent - 2_000, sent + 4_000, frame, BLOCK, 8_192, 8_192, 2_000)
    for i in range(BLOCK):
        begun = clock()
        lane.put(ids["emit"], begun, clock.advance(1_003 + i), frame + i, 1, 50 + i, 200, 30)
    if frame == 0:
        lane.put(ids["emit"], clock(), clock.advance(500), 1 << 30, 1)
    lane.put(ids["block"], start, clock.advance(1_100), frame, BLOCK)
