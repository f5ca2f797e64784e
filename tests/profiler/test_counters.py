"""Counting events: attributes and groups against a fake kernel, and what this machine really has."""

import errno
import os
import struct
import sys
from dataclasses import dataclass, field

import pytest

from profiler.machine import counters
from profiler.machine.counters import EVENTS, HARDWARE, SOFTWARE, Group, probe, read_cost_ns
from tests.each import each

NAMES = [event.name for event in EVENTS]
HARD = [event.name for event in EVENTS if event.type == HARDWARE]
SOFT = [event.name for event in EVENTS if event.type == SOFTWARE]


@dataclass
class FakeKernel:
    """perf_event_open as the manual page tells it: errors by event, values that grow with each reading."""

    refuse: dict[str, int] = field(default_factory=dict)
    refuse_kernel_mode: bool = False
    level: int | None = 2
    free_hardware: int = 99
    stuck: tuple[str, ...] = ()
    running: float = 1.0
    readings: int = 0
    opened: dict[int, tuple[str, int, bool]] = field(default_factory=dict)
    closed: list[int] = field(default_factory=list)
    controls: list[tuple[int, int]] = field(default_factory=list)

    def open(self, attributes: bytes, group: int) -> int:
        fields = struct.unpack("=IIQQQQQIIQ", attributes)
        kind, size, config, _, _, read_format, flags = fields[:7]
        assert size == len(attributes) == 64
        assert read_format == 0b1011  # times enabled and running, whole group
        event = next(e for e in EVENTS if (e.type, e.config) == (kind, config))
        assert flags & 1 == (group < 0)  # only the leader begins disabled
        assert group < 0 or group in self.opened
        user_only = bool(flags & 1 << 5)
        if event.name in self.refuse:
            raise OSError(self.refuse[event.name], "refused")
        if self.refuse_kernel_mode and not user_only:
            raise OSError(errno.EACCES, "denied")
        descriptor = 10 + len(self.opened) + len(self.closed)
        self.opened[descriptor] = (event.name, group, user_only)
        return descriptor

    def control(self, descriptor: int, request: int) -> None:
        self.controls.append((descriptor, request))

    def read(self, descriptor: int, size: int) -> bytes:
        self.readings += 1
        names = [name for name, _, _ in self.opened.values()]
        enabled = 1000 * self.readings
        fits = sum(name in HARD for name in names) <= self.free_hardware
        running = int(enabled * self.running) if fits else 0
        values = [0 if name in self.stuck or not fits else self.readings * (i + 1) for i, name in enumerate(names)]
        data = struct.pack(f"={3 + len(names)}Q", len(names), enabled, running, *values)
        assert len(data) == size
        return data

    def close(self, descriptor: int) -> None:
        del self.opened[descriptor]
        self.closed.append(descriptor)

    def paranoid(self) -> int | None:
        return self.level


def test_all_events_form_one_group_with_one_reading():
    kernel = FakeKernel()
    with Group(kernel) as group:
        assert [event.name for event in group.events] == NAMES
        leader = next(iter(kernel.opened))
        assert [of for _, of, _ in kernel.opened.values()] == [-1, *[leader] * (len(NAMES) - 1)]
        before = kernel.readings
        enabled, running, *values = group.read()
        assert kernel.readings == before + 1
        assert enabled == running == 1000 * kernel.readings
        assert values == [kernel.readings * (i + 1) for i in range(len(NAMES))]
        # Reset, then enabled: both for the whole group.
        assert kernel.controls == [(leader, 0x2403), (leader, 0x2400)]
    group.close()
    assert (kernel.opened, kernel.closed[-1]) == ({}, leader)


@each(
    "code, says",
    [
        (errno.ENOENT, "virtual machines"),
        (errno.EOPNOTSUPP, "PMU"),
        (errno.ENOSYS, "without perf events"),
        (errno.EMFILE, "ulimit"),
        (errno.EPERM, "seccomp"),
        (errno.E2BIG, "perf_event_open failed"),
    ],
)
def test_a_missing_event_has_its_reason_and_the_others_count(code, says):
    kernel = FakeKernel(refuse=dict.fromkeys(HARD, code))
    with Group(kernel) as group:
        assert [event.name for event in group.events] == SOFT
        reasons = {a.event.name: a.reason for a in group.availability if not a.available}
    assert set(reasons) == set(HARD)
    assert all(says in reason for reason in reasons.values())
    assert [a.event.name for a in group.availability] == NAMES


@each("level", [3, 4])
def test_a_forbidden_event_says_what_to_set(level):
    kernel = FakeKernel(refuse=dict.fromkeys(NAMES, errno.EACCES), level=level)
    found = {a.event.name: a for a in probe(kernel)}
    assert not any(a.available for a in found.values())
    assert f"perf_event_paranoid is {level}" in found["cycles"].reason
    assert "perf_event_paranoid=2" in found["cycles"].reason
    # What happens inside the kernel needs more.
    assert "perf_event_paranoid=1" in found["context_switches"].reason
    assert not kernel.opened


def test_without_the_right_to_see_the_kernel_user_mode_is_counted():
    with Group(FakeKernel(refuse_kernel_mode=True)) as group:
        found = {a.event.name: a for a in group.availability}
    cycles, switches = found["cycles"], found["context_switches"]
    assert (cycles.available, cycles.user_only) == (True, True)
    assert "user mode" in cycles.reason
    # In user mode alone there are none: a zero would be a lie.
    assert not switches.available
    assert "perf_event_paranoid is 2" in switches.reason
    # The task's clock runs on in the kernel.
    assert not found["task_clock_ns"].user_only


def test_a_group_too_large_for_the_processor_gives_up_its_last_hardware_events():
    kernel = FakeKernel(free_hardware=2)
    with Group(kernel) as group:
        assert [event.name for event in group.events] == [*HARD[:2], *SOFT]
        lost = {a.event.name: a.reason for a in group.availability if not a.available}
        assert set(lost) == set(HARD[2:])
        assert all("no counter left" in reason for reason in lost.values())
        assert group.read()[1] > 0
    assert not kernel.opened


def test_without_any_event_there_is_nothing_to_read(monkeypatch):
    with Group(FakeKernel(stuck=("cycles",))) as group:
        assert "cycles" not in [event.name for event in group.events], "they stand still"
    with Group(FakeKernel(refuse=dict.fromkeys(NAMES, errno.ENOENT))) as group:
        assert group.events == ()
        assert read_cost_ns(group) is None
        with pytest.raises(ValueError, match="no counter is available"):
            group.read()
    monkeypatch.setattr(counters.sys, "platform", "darwin")
    found = probe()
    assert not any(a.available for a in found)
    assert all("perf_event_open" in a.reason for a in found)
    assert Group().events == ()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="perf_event_open is Linux's")
def test_what_this_machine_has_agrees_with_what_the_process_did():
    import resource

    def reported() -> int:
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        return usage.ru_minflt + usage.ru_majflt

    available = {a.event.name: a for a in probe()}
    assert all(a.reason for a in available.values())
    open_before = len(os.listdir("/proc/self/fd"))
    with Group() as group:
        names = [event.name for event in group.events]
        assert names == [name for name in NAMES if available[name].available]
        if "page_faults" not in names:
            pytest.skip("no counters in this sandbox: " + available["page_faults"].reason)
        before, faults = group.read(), reported()
        touched = bytearray(3000 * resource.getpagesize())
        after, faults = group.read(), reported() - faults
        del touched
        counted = dict(zip(names, (b - a for a, b in zip(before[2:], after[2:], strict=True)), strict=True))
        # The two readings lie a few microseconds apart.
        assert counted["page_faults"] == pytest.approx(faults, abs=20)
        assert after[0] > before[0]
        assert read_cost_ns(group) > 0
    assert len(os.listdir("/proc/self/fd")) == open_before
