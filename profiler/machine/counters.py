"""Counters of the processor and the kernel for the calling thread, through perf_event_open(2).

An optional tier: each event is tried on its own, and an unavailable one has a reason in one sentence, never a 0. The
available ones are opened as one group, so that one read() returns counts of the same stretch of time.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from profiler.clock import now_ns

SYSCALLS: Final = {
    "x86_64": 298,
    "armv7l": 364,
    "ppc64le": 319,
    "s390x": 331,
    **dict.fromkeys(("i386", "i686"), 336),
    **dict.fromkeys(("aarch64", "riscv64", "loongarch64"), 241),
}
"""Number of perf_event_open by machine (each architecture's asm/unistd.h)."""

PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")

HARDWARE: Final = 0
SOFTWARE: Final = 1  # perf_event_attr.type, from linux/perf_event.h; the numbers of the events below are from there too

_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 0, 1 << 5, 1 << 6
_TOTAL_TIME_ENABLED, _TOTAL_TIME_RUNNING, _GROUP = 1 << 0, 1 << 1, 1 << 3
_ENABLE, _RESET = 0x2400, 0x2403
_IOC_GROUP = 1
_CLOEXEC = 8

_ATTRIBUTES: Final = struct.Struct("=IIQQQQQIIQ")  # perf_event_attr in its first version, 64 bytes, always accepted


@dataclass(frozen=True, slots=True)
class Event:
    """One counter. `in_kernel`: it happens inside the kernel, so counting user mode alone would read 0."""

    name: str
    title: str
    type: int
    config: int
    in_kernel: bool = False


TASK_CLOCK: Final = "task_clock_ns"

EVENTS: Final = (
    Event("cycles", "cycles", HARDWARE, 0),
    Event("instructions", "instructions", HARDWARE, 1),
    Event("cache_references", "cache references", HARDWARE, 2),
    Event("cache_misses", "cache misses", HARDWARE, 3),
    Event("page_faults", "page faults", SOFTWARE, 2),
    Event("context_switches", "context switches", SOFTWARE, 3, in_kernel=True),
    Event(TASK_CLOCK, "time on a processor", SOFTWARE, 1),
)
"""Requested events in order of preference; if the processor has fewer counters, the last hardware ones are dropped."""


class Kernel:
    """The system calls that counting needs; OSError as they fail."""

    def __init__(self) -> None:
        """OSError (ENOSYS) where there is no perf_event_open to call."""
        number = SYSCALLS.get(platform.machine())
        if not sys.platform.startswith("linux") or number is None:
            raise OSError(errno.ENOSYS, f"{platform.system()} on {platform.machine()} has no perf_event_open")
        self._number = number
        self._library = ctypes.CDLL(None, use_errno=True)
        self._library.syscall.restype = ctypes.c_long

    def open(self, attributes: bytes, group: int) -> int:
        """perf_event_open for the calling thread on any processor: a file descriptor."""
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        this_thread, any_processor, leader = map(ctypes.c_int, (0, -1, group))
        number, flags = ctypes.c_long(self._number), ctypes.c_ulong(_CLOEXEC)
        descriptor = self._library.syscall(number, buffer, this_thread, any_processor, leader, flags)
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return int(descriptor)

    def control(self, descriptor: int, request: int) -> None:
        import fcntl

        fcntl.ioctl(descriptor, request, _IOC_GROUP)

    def read(self, descriptor: int, size: int) -> bytes:
        return os.read(descriptor, size)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def paranoid(self) -> int | None:
        """kernel.perf_event_paranoid, or None where there is none."""
        try:
            return int(PARANOID.read_text())
        except (OSError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether one event can be counted here. `reason` says why it cannot, or how it is (user mode only)."""

    event: Event
    available: bool
    reason: str
    user_only: bool = False


def probe(kernel: Kernel | None = None) -> list[Availability]:
    """Try every event on its own; nothing stays open."""
    try:
        kernel = kernel or Kernel()
    except OSError as problem:
        return [Availability(event, False, str(problem.strerror)) for event in EVENTS]
    found = []
    for event in EVENTS:
        descriptor, result = _try(kernel, event, -1)
        if descriptor is not None:
            kernel.close(descriptor)
        found.append(result)
    return found


class Group:
    """The events that can be counted, opened as one group on the calling thread.

    `events`: what is counted, in the order of `read`; may be empty. `availability`: all of EVENTS with
    reasons. Only the thread that opened it is counted, whoever reads.
    """

    def __init__(self, kernel: Kernel | None = None) -> None:
        self.events: tuple[Event, ...] = ()
        self._descriptors: list[int] = []
        try:
            self._kernel = kernel or Kernel()
        except OSError:
            self.availability = probe()
            return
        refused: dict[Event, Availability] = {}
        self.availability = self._open(refused)
        while given_up := self._unscheduled():
            refused[given_up] = Availability(given_up, False, "the processor has no counter left for it")
            self.close()
            self.availability = self._open(refused)

    def read(self) -> tuple[int, ...]:
        """Return (enabled ns, running ns, values); shared counters run for less than enabled; ValueError if none."""
        if not self.events:
            raise ValueError("no counter is available, so there is none to read")
        return struct.unpack(f"={self._size // 8}Q", self.read_raw())[1:]

    def read_raw(self) -> bytes:
        """Return one reading as the kernel gives it, uint64 [3 + events]: how many, enabled ns, running ns, values."""
        return self._kernel.read(self._descriptors[0], self._size)

    def close(self) -> None:
        """Stop counting; idempotent."""
        # Members first: closing the leader would make each of them a group of its own.
        while self._descriptors:
            self._kernel.close(self._descriptors.pop())

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, refused: Mapping[Event, Availability]) -> list[Availability]:
        """Open all events but the `refused` ones; returns what became of each of EVENTS."""
        found, events = [], []
        for event in EVENTS:
            if event in refused:
                found.append(refused[event])
                continue
            descriptor, result = _try(self._kernel, event, self._descriptors[0] if self._descriptors else -1)
            found.append(result)
            if descriptor is not None:
                self._descriptors.append(descriptor)
                events.append(event)
        self.events = tuple(events)
        self._size = 8 * (3 + len(events))
        if events:
            self._kernel.control(self._descriptors[0], _RESET)
            self._kernel.control(self._descriptors[0], _ENABLE)
        return found

    def _unscheduled(self) -> Event | None:
        """Return the event to give up when the group does not fit the processor, else None."""
        hardware = [event for event in self.events if event.type == HARDWARE]
        if not hardware:
            return None
        sum(i * i for i in range(1000))  # something to count, some 50 µs of it
        _, running, *values = self.read()
        if running == 0:
            return hardware[-1]
        # Some virtual machines accept the event and never count.
        counted = zip(self.events, values, strict=True)
        return next((e for e, value in counted if e.name in ("cycles", "instructions") and value == 0), None)


def read_cost_ns(group: Group, rounds: int = 7, reads: int = 200) -> float | None:
    """Measure what one reading of the group costs in ns, as hot code does it; None without events."""
    if not group.events:
        return None

    def spent() -> int:
        start = now_ns()
        for _ in range(reads):
            group.read_raw()
        return now_ns() - start

    return round(median(spent() for _ in range(rounds)) / reads, 1)


def _try(kernel: Kernel, event: Event, group: int) -> tuple[int | None, Availability]:
    """Open `event` in the group; without the right to see the kernel, in user mode only."""
    read_format = _TOTAL_TIME_ENABLED | _TOTAL_TIME_RUNNING | _GROUP
    for user_only in (False, True):
        flags = (_DISABLED if group < 0 else 0) | (_EXCLUDE_KERNEL | _EXCLUDE_HV if user_only else 0)
        try:
            descriptor = kernel.open(
                _ATTRIBUTES.pack(event.type, _ATTRIBUTES.size, event.config, 0, 0, read_format, flags, 0, 0, 0), group
            )
        except OSError as error:
            problem = error
            if error.errno in (errno.EACCES, errno.EPERM) and not event.in_kernel:
                continue
            break
        # The task clock runs in the kernel's part too, whatever was excluded.
        part = user_only and event.name != TASK_CLOCK
        how = "user mode only: the kernel's part is hidden" if part else "counted"
        return descriptor, Availability(event, True, how, part)
    return None, Availability(event, False, _reason(event, problem, kernel.paranoid()))


def _reason(event: Event, problem: OSError, paranoid: int | None) -> str:
    code = problem.errno
    if code in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.ENXIO):
        if event.type != HARDWARE:
            return f"this kernel does not count it ({errno.errorcode[code]})"
        return (
            "this machine shows no performance monitoring unit (PMU) that counts it; most virtual "
            f"machines have none ({errno.errorcode[code]})"
        )
    if code in (errno.EACCES, errno.EPERM):
        allowed = 1 if event.in_kernel else 2
        if paranoid is not None and paranoid > allowed:
            return (
                f"the kernel forbids it: perf_event_paranoid is {paranoid}; "
                f"`sudo sysctl kernel.perf_event_paranoid={allowed}` allows it"
            )
        return (
            "a security policy forbids perf_event_open (in a container: the seccomp profile; run it with "
            "--cap-add PERFMON)"
        )
    if code == errno.ENOSYS:
        return "this kernel was built without perf events, or a sandbox hides them (ENOSYS)"
    if code in (errno.EMFILE, errno.ENFILE):
        return "too many files are open in this process (ulimit -n)"
    return f"perf_event_open failed: {problem.strerror or problem}"
