"""Workers that wait for each other for ever, seen from outside: by the processor time that they no longer take.

Time is counted in looks, not by a clock: while the machine sleeps, or everything on it is stopped, nobody looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psutil

LOOKS_EVERY_S: Final = 2.0
LOOKS: Final = 15
"""Without work until it is over: half a minute. The longest wait of a worker is for one minibatch of another."""

IDLE: Final = 0.03
"""Of a processor, up to which a worker only waits: gloo looks for messages about a hundred times a second, 0.8 %
measured. One that computes has its share even where thirty processes want the same core."""


class Standstill:
    """The workers of one job on this machine, `expected` of them."""

    def __init__(self, launcher: int, expected: int) -> None:
        """`launcher`: the process whose children they are."""
        self._launcher, self._expected = launcher, expected
        self._workers: Sequence[psutil.Process] = ()
        self._taken: list[float] = []
        self._looks = 0

    def look(self) -> bool:
        """Whether no worker has worked for LOOKS looks; to be asked every LOOKS_EVERY_S seconds."""
        try:
            taken = self._seconds()
        except psutil.Error:
            taken = []  # somebody ended, which the launcher says
        since = zip(self._taken, taken, strict=True) if len(taken) == len(self._taken) else ()
        idle = [now - before < IDLE * LOOKS_EVERY_S for before, now in since]
        self._looks = self._looks + 1 if idle and all(idle) else 0
        self._taken = taken
        return self._looks >= LOOKS

    def _seconds(self) -> list[float]:
        """Of a processor that each worker took; nothing as long as not all have been started."""
        if not self._workers:
            found = psutil.Process(self._launcher).children()
            self._workers = found if len(found) >= self._expected else ()
        return [sum(worker.cpu_times()[:2]) for worker in self._workers]
