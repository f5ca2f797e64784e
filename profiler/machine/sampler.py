"""Load and memory during a run, ten times per second, on a thread of its own; accelerators, which are slow, on another.

A quantity that this system does not report is left out from then on, never recorded as zero.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

import psutil

if TYPE_CHECKING:
    from profiler.session.writer import Journal

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from profiler.clock import now_ns
from profiler.machine import accelerator, energy

Reading = Callable[[], Mapping[str, float]]

INTERVAL_SECONDS: Final = 0.1  # psutil counts in clock ticks of 10 ms; faster would show their grain
SELDOM: Final = 10  # Quantities that hardly change, or that take long to read, are read at every tenth sample


class Sampler:
    """Samples this process (or `pid`) and the system until stopped; use as a context manager or start/stop.

    Names carry units; faults and switches are totals since the process began, steal since the system did. `process`:
    whether to read those; `more`: other readings, by name; `also`: called at each sample.
    """

    def __init__(
        self,
        journal: "Journal",
        *,
        pid: int | None = None,
        interval_s: float = INTERVAL_SECONDS,
        clock: Callable[[], int] = now_ns,
        process: bool = True,
        more: Mapping[str, Reading] | None = None,
        also: Callable[[], None] | None = None,
    ) -> None:
        self._journal = journal
        self._also = also
        self._interval_s = interval_s
        self._clock = clock
        self._process = psutil.Process(pid)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._used = now_ns(), time.process_time()
        self._readings = (self._of_process() if process else {}) | dict(more or {})

    def _of_process(self) -> dict[str, Reading]:
        # Load, switches and faults: the own process's in one call where the system has it.
        load: dict[str, Reading] = {"usage": self._usage}
        if resource is None or self._process.pid != os.getpid():
            load = {"cpu": lambda: {"process.cpu_percent": self._process.cpu_percent()}, "switches": self._switches}
        return {
            **load,
            "memory": lambda: {"process.rss_bytes": self._process.memory_info().rss},
            "system": lambda: {"system.cpu_percent": psutil.cpu_percent()},
            "threads": _seldom(lambda: {"process.threads": self._process.num_threads()}),
            "available": _seldom(lambda: {"system.memory_available_bytes": psutil.virtual_memory().available}),
            "frequency": self._frequency,
            "steal": _seldom(lambda: {"system.steal_seconds": psutil.cpu_times().steal}),
        }

    def start(self) -> "Sampler":
        """Begin sampling."""
        if self._thread is None:
            # The first percentages cover no time and would read 0.
            self.read()
            self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """Stop sampling and wait for the thread; idempotent."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> "Sampler":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def read(self) -> dict[str, float]:
        """Take one reading of everything that can be read here."""
        values: dict[str, float] = {}
        with suppress(psutil.Error), self._process.oneshot():
            for name, reading in list(self._readings.items()):
                try:
                    values.update(reading())
                except (psutil.AccessDenied, AttributeError, NotImplementedError, OSError, KeyError):
                    del self._readings[name]
        return values

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            if values := self.read():
                self._journal.sample(self._clock(), values)
            if self._also is not None:
                self._also()

    def _usage(self) -> dict[str, float]:
        assert resource is not None
        now, usage = now_ns(), resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = usage.ru_utime + usage.ru_stime
        (before, before_s), self._used = self._used, (now, cpu_s)
        return {
            "process.cpu_percent": 1e11 * (cpu_s - before_s) / max(now - before, 1),
            "process.switches_voluntary": usage.ru_nvcsw,
            "process.switches_involuntary": usage.ru_nivcsw,
            "process.faults_minor": usage.ru_minflt,
            "process.faults_major": usage.ru_majflt,
        }

    def _switches(self) -> dict[str, float]:
        switches = self._process.num_ctx_switches()
        return {"process.switches_voluntary": switches.voluntary, "process.switches_involuntary": switches.involuntary}

    def _frequency(self) -> dict[str, float]:
        frequency = psutil.cpu_freq()
        # Virtual machines report a constant without minimum and maximum: that is no reading.
        if frequency is None or not frequency.max:
            raise NotImplementedError("the clock frequency is not readable")
        return {"system.cpu_mhz": frequency.current}


def _seldom(reading: Reading) -> Reading:
    """`reading` once in SELDOM times, nothing at the others."""
    turn = itertools.count()
    # What is read before the first sample is thrown away.
    return lambda: reading() if (n := next(turn)) == 0 or n % SELDOM == 1 else {}


@contextmanager
def watching(
    journal: "Journal", also: Callable[[], None] | None = None, more: Mapping[str, Reading] | None = None
) -> Iterator[None]:
    """Sample load, energy, accelerators and `more` by name within the context; `also` is called at each sample."""
    with ExitStack() as stack:
        with suppress(accelerator.Unavailable):
            found = stack.enter_context(accelerator.devices())
            stack.enter_context(Sampler(journal, process=False, more=found.readings()))
        stack.enter_context(Sampler(journal, more={**energy.readings(), **(more or {})}, also=also))
        yield
