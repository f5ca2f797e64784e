"""One measurement: N processes `asrscope run --no-profile --wait`, each with a stream of its own on the clock.

All prepare first and begin together, a little apart. What they do in the warm-up and after the window is not
counted. The streams are open loops: their sound arrives whether or not they have decoded what came before. They end
when this process does, since their standard input then ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
import numpy as np
import psutil

from pipelines.audio.writing import write_wav
from profiler.arrays import F32
from profiler.clock import now_ns
from profiler.errors import BadInput, Cancelled
from profiler.files import outputs
from profiler.files.paths import demand_room
from profiler.machine import cpu_limit, energy
from profiler.process import children

RESULT: Final = "result.json"
READY: Final = "decoding"  # The line of progress with which a run that waits is ready (app/cli/run.py)
WARM_UP_S: Final = 5.0  # After the last stream has begun: buffers find their size and code comes into the caches
AFTER_S: Final = 5.0  # For what has arrived within the window to be shown: what takes longer is a queue
MARGIN_S: Final = 5.0  # Sound left at the end, so that no stream ends before it is stopped; and 0.05 s for each stream
APART_S: Final = 0.04  # Between the beginnings of two streams: to read the sound takes about so long
GOLDEN: Final = 0.618034  # Multiples of it are spread evenly over the length of a chunk, however many there are
FILES: Final = 16  # Sounds of a measurement, each beginning elsewhere; more streams than that share them
PAUSE_S: Final = 1.0  # Between two utterances, so that an endpoint is found
PAUSE_LEVEL: Final = np.float32(1e-4)
"""Of the noise in it: 80 dB below full scale. Digital silence is no sound of a microphone."""

REPORT_BYTES: Final = 1_000_000  # Room for what a stream writes: its report has a hundred bytes for a chunk
POLL_S: Final = 0.05
PATIENCE_S: Final = 60.0  # Seconds that a stopped run has to print its report
STOPPED: Final = (0, 130)  # Exit statuses of a run that has ended, or was stopped
SINGLE: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""One thread in each library."""

LONGEST_NS: Final = 10**13  # Of a window: `--seconds` takes 3600 s
Number = Annotated[float, msgspec.Meta(ge=0.0, le=1e15)]


class Level(msgspec.Struct, frozen=True):
    """What the machine says of a measurement; times of the clock that all processes share, ns.

    `waited_s`: how long the decoding threads were ready without a processor, `throttled_s`: of that, by a CPU limit;
    `cpu_s`: processor time of all streams, `busy_s`: of the cores, by all programs; all within the window.
    `memory_bytes`: proportional set size of all streams. None where the system does not tell.
    """

    n: Annotated[int, msgspec.Meta(ge=1)]
    begin_ns: int
    end_ns: int
    stopped_ns: int
    setup_s: Number
    cpu_s: Number
    waited_s: Number | None
    busy_s: Number | None
    memory_bytes: Annotated[int, msgspec.Meta(ge=0)] | None
    joules: float | None
    throttled_s: Number | None = None

    def __post_init__(self) -> None:
        window_ns = self.end_ns - self.begin_ns
        if not (self.begin_ns >= 0 and 0 < window_ns <= LONGEST_NS and 0 <= self.stopped_ns <= 1 << 62):
            raise ValueError("its times do not follow each other")

    @property
    def window_s(self) -> float:
        return (self.end_ns - self.begin_ns) * 1e-9


@dataclass(frozen=True)
class Sound:
    """What is said: f32 [n] at `rate` Hz, repeated as long as a measurement lasts."""

    samples: F32
    rate: int

    @classmethod
    def of(cls, sounds: Sequence[F32], rate: int) -> Sound:
        pause = np.random.default_rng(0).standard_normal(int(PAUSE_S * rate)).astype(np.float32) * PAUSE_LEVEL
        return cls(np.concatenate([part for sound in sounds for part in (sound, pause)]), rate)

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate

    def write(self, path: Path, seconds: float, share: float) -> None:
        """Write `seconds` of it to a WAV file, beginning at this share of it."""
        begin = int(share * len(self.samples))
        at = np.arange(begin, begin + int(seconds * self.rate)) % len(self.samples)
        write_wav(path, self.samples[at].clip(-1.0, 1.0), self.rate, "PCM_16")


@dataclass(frozen=True)
class Machine:
    """Processors by number that the streams share, and watts of the idle machine; None where that is not known."""

    cores: tuple[int, ...]
    idle_watts: float | None


def watts_of_idle() -> float | None:
    """Power of the processor packages before anything runs; None where it cannot be read or they were busy."""
    known = energy.idle()
    watts, busy = known.get("watts"), known.get("busy_percent")
    return float(watts) if isinstance(watts, int | float) and isinstance(busy, int | float) and busy < 5 else None


def run_once(command: Sequence[str], folder: Path, cores: tuple[int, ...], cancelled: Callable[[], bool]) -> int | None:
    """Run a command to its end; returns its resident memory before that, bytes. BadInput where it fails."""
    with _Streams(folder, cores, cancelled) as streams:
        streams.start(command)
        streams.wait_until_ready()
        memory = streams.memory_bytes()
        streams.begin(0)
        streams.finish()
        return memory


@dataclass(frozen=True)
class Bench:
    """What all measurements have in common; `command`: what decodes a sound file."""

    command: Callable[[Path], Sequence[str]]
    sound: Sound
    chunk_s: float
    machine: Machine
    cancelled: Callable[[], bool]

    def measure(self, n: int, window_s: float, folder: Path, step: Callable[[str], None]) -> Level:
        """Let `n` streams run for `window_s`; no stream is left then. `step`: called with what is done.

        Leaves in `folder` the report of each stream, N.json, and result.json. BadInput where a stream ends early.
        """
        starts = _starts(n, self.chunk_s)
        length_s = starts[-1] + WARM_UP_S + window_s + AFTER_S + MARGIN_S + 0.05 * n
        files = [folder / f"sound-{number + 1}.wav" for number in range(min(n, FILES))]
        sounds = 2 * len(files) * length_s * self.sound.rate
        folder.parent.mkdir(exist_ok=True)
        demand_room(folder.parent, sounds + REPORT_BYTES * (n + 1))
        folder.mkdir()
        try:
            for number, file in enumerate(files):
                self.sound.write(file, length_s, number / len(files))
            with _Streams(folder, self.machine.cores, self.cancelled) as streams:
                level = self._measure(streams, [files[k % FILES] for k in range(n)], starts, window_s, step)
        finally:
            for file in files:
                file.unlink(missing_ok=True)
        with outputs.writing(folder / RESULT, "the measurement") as draft:
            draft.write_bytes(msgspec.json.encode(level))
        return level

    def _measure(
        self,
        streams: _Streams,
        files: Sequence[Path],
        starts: Sequence[float],
        window_s: float,
        step: Callable[[str], None],
    ) -> Level:
        begun = time.monotonic()
        for file in files:
            step("starting")
            streams.start(self.command(file))
            streams.wait_until_ready(len(self.machine.cores) - 1)
        streams.wait_until_ready()
        setup_s = time.monotonic() - begun
        step(f"measuring for {window_s:.0f} s")
        begun_ns = now_ns()
        for number, start_s in enumerate(starts):
            streams.sleep_until(begun_ns + int(start_s * 1e9))
            streams.begin(number)
        streams.sleep_until(now_ns() + int(WARM_UP_S * 1e9))
        before = streams.usage()
        streams.sleep_until(before.at_ns + int(window_s * 1e9))
        now = streams.usage()
        joules, idle = _difference(now.joules, before.joules), self.machine.idle_watts
        streams.sleep_until(now.at_ns + int(AFTER_S * 1e9))
        memory, stopped_ns = streams.memory_bytes(), now_ns()
        step("ending")
        streams.finish(stop=True)
        return Level(
            n=len(files),
            begin_ns=before.at_ns,
            end_ns=now.at_ns,
            stopped_ns=stopped_ns,
            setup_s=setup_s,
            cpu_s=now.cpu_s - before.cpu_s,
            waited_s=_difference(now.waited_s, before.waited_s),
            busy_s=_difference(now.busy_s, before.busy_s),
            memory_bytes=memory,
            joules=None if joules is None or idle is None else joules - idle * (now.at_ns - before.at_ns) * 1e-9,
            throttled_s=_difference(now.throttled_s, before.throttled_s),
        )


def _starts(n: int, chunk_s: float) -> list[float]:
    """When each stream begins, s: APART_S in the mean, and evenly spread over the length of a chunk."""
    each = max(1, int(chunk_s / APART_S))
    return sorted((number // each + number * GOLDEN % 1) * chunk_s for number in range(n))


def _difference(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else now - before


class _Usage(NamedTuple):
    at_ns: int
    cpu_s: float
    waited_s: float | None
    busy_s: float | None
    throttled_s: float | None
    joules: float | None


class _Streams:
    """The processes of a measurement; none of them outlives the context."""

    def __init__(self, folder: Path, cores: tuple[int, ...], cancelled: Callable[[], bool]) -> None:
        self._folder, self._cores, self._cancelled = folder, cores, cancelled
        self._running: list[subprocess.Popen[bytes]] = []
        self._preparing: list[int] = []
        self._joules = energy.packages()
        self._throttling = cpu_limit.Throttling()  # that of this process, whose group its children are in

    def __enter__(self) -> _Streams:
        return self

    def __exit__(self, *_: object) -> None:
        self._throttling.close()
        for child in self._running:
            child.kill()
        for child in self._running:
            child.communicate()

    def start(self, command: Sequence[str]) -> None:
        number = len(self._running)
        with self._file(number, "json").open("wb") as printed, self._file(number, "txt").open("wb") as complaints:
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=complaints,
                env=children.environment(SINGLE),
                start_new_session=True,  # Ctrl+C is for this process, which ends them
            )
        self._running.append(child)
        self._preparing.append(number)
        if self._cores and hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(child.pid, self._cores)

    def wait_until_ready(self, others: int = 0) -> None:
        while len(self._preparing) > others:
            lines = {number: self._complaints(number).splitlines() for number in self._preparing}
            self._preparing = [number for number in lines if READY not in lines[number]]
            self._look()
            time.sleep(POLL_S)

    def begin(self, number: int) -> None:
        pipe = self._running[number].stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):
            pipe.write(b"\n")
            pipe.flush()

    def sleep_until(self, at_ns: int) -> None:
        while (left := (at_ns - now_ns()) * 1e-9) > 0:
            if left > POLL_S:
                self._look()
            time.sleep(min(left, 4 * POLL_S))

    def finish(self, stop: bool = False) -> None:
        """Wait for their ends and reports; `stop` them before. Raises Cancelled, and BadInput where one fails."""
        for child in self._running if stop else ():
            assert child.stdin is not None
            child.stdin.close()
        end = time.monotonic() + PATIENCE_S
        while any(child.poll() is None for child in self._running):
            if self._cancelled():
                raise Cancelled
            if stop and time.monotonic() > end:
                raise BadInput(f"A stream has not ended {PATIENCE_S:.0f} s after it was stopped.")
            time.sleep(POLL_S)
        for number, child in enumerate(self._running):
            if child.returncode not in STOPPED:
                raise self._failure(number)

    def usage(self) -> _Usage:
        at_ns, cpu_s = now_ns(), 0.0
        waited_s: float | None = 0.0
        for number, child in enumerate(self._running):
            try:
                times = psutil.Process(child.pid).cpu_times()
            except psutil.Error:
                raise self._failure(number) from None
            cpu_s += times.user + times.system
            try:
                if waited_s is not None:
                    waited_s += int(Path(f"/proc/{child.pid}/schedstat").read_text().split()[1]) * 1e-9
            except (OSError, ValueError, IndexError):
                waited_s = None
        throttled_s = self._throttling.total_ns() * 1e-9 if self._throttling.limited else None
        joules = self._joules() if self._joules else None
        return _Usage(at_ns, cpu_s, waited_s, _busy_s(self._cores), throttled_s, joules)

    def memory_bytes(self) -> int | None:
        """Proportional set size of all."""
        total = 0
        for number, child in enumerate(self._running):
            try:
                total += psutil.Process(child.pid).memory_full_info().pss
            except (psutil.AccessDenied, AttributeError):  # not every system has it
                return None
            except psutil.Error:
                raise self._failure(number) from None
        return total

    def _look(self) -> None:
        if self._cancelled():
            raise Cancelled
        for number, child in enumerate(self._running):
            if child.poll() is not None:
                raise self._failure(number)

    def _failure(self, number: int) -> BadInput:
        status = self._running[number].wait()
        return BadInput(f"Stream {number + 1} has ended: {children.last_words(self._complaints(number), status)}.")

    def _complaints(self, number: int) -> str:
        return children.complaints(self._file(number, "txt"))

    def _file(self, number: int, suffix: str) -> Path:
        return self._folder / f"{number + 1}.{suffix}"


def _busy_s(cores: Sequence[int]) -> float | None:
    """Time that the cores have worked for any program, s."""
    each = psutil.cpu_times(percpu=True)
    if not cores or max(cores) >= len(each):
        return None
    # Linux counts the time of guests among that of users as well.
    idle = ("idle", "iowait", "guest", "guest_nice")
    return sum(float(sum(each[core])) - sum(getattr(each[core], name, 0.0) for name in idle) for core in cores)
