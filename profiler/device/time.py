"""Device time on the host clock: what a device did while the host worked or waited.

Work is enclosed in pairs of events, read after the block; their times are mapped to the host's clock by pairs of
readings taken while the device was idle. The host's waiting is divided by what the device ran meanwhile: a copy that
waits for asynchronous arithmetic is charged for the copy alone (the classic mistake is to bill it for all). Device work
that no wait was charged for is hidden. `profiler.device.clock.DeviceClock` is what an adapter provides.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from profiler.device.clock import Busy, ClockMap, DeviceClock, Event, Wait, charge, measure_pair, ns_per_event
from profiler.spans import Cost, Lane, Linear, NullLane, Recorder

DEVICE: Final = "device"  # Kind of the lanes that show a stream's own time; their spans are not part of any wall time
TRANSFER_WORK: Final = ("bytes", "pinned bytes", "unwaited ns")  # Size, size if page-locked, time not waited for
TRANSFER_COST: Final = Cost(transferred=Linear(per_work=(1.0, 0.0, 0.0)))

WAIT: Final = ".wait"  # Ending of the stage on the host's lane that holds the waiting for a device stage
LATENCY: Final = "device.latency"  # Waiting while no stream ran anything: launches, the driver, the way back
PAIR_EVERY_NS: Final = 100_000_000  # Between clock pairs: crystals differ by some 50 ppm, 5 µs in this time
PAIR_LATEST_NS: Final = 2_000_000_000  # Then a device that is never idle is waited for: 100 µs of drift at most
EVENTS: Final = "device_events"  # Key of meta: number of timed events, their cost and that of blocks' ends

WAITED: Final = Cost(
    unmodelled="it waits for the device; what the device did meanwhile stands on the device's own lane"
)
"""The law of the stages that end in WAIT, but for those of scoring, which have the law of what ran."""

IDLE: Final = Cost(unmodelled="no stream ran anything meanwhile: launches, the driver, the way back to the host")
"""The law of LATENCY."""

RECORDING: Final = "device.record"  # Cost for the host at the end of each block, clock pairs included

RECORDS: Final = Cost(unmodelled="the recorder reads the device's events and divides the waits by what it ran")
"""The law of RECORDING."""

_LARGEST: Final = (1 << 32) - 1


class Part(NamedTuple):
    """What the device itself timed within a piece of work: `ns` of `stage`, with these work counts."""

    stage: int
    ns: int
    work: tuple[int, int, int] = (0, 0, 0)


@dataclass(slots=True)
class _Item:
    """Work given to a stream, not yet known to be done."""

    stream: int
    stage: int
    epoch: int
    given_ns: int
    began: Event
    ended: Event
    first_frame: int
    frames: int
    work: tuple[int, int, int]
    transfer: bool
    key: int
    parts: Sequence[Part] = ()
    passed_on: bool = False  # Its last event is the first one of what follows it, which gives it back


class DeviceTimer:
    """Records what a device does for a run: a lane per stream, and the host's waits on the host's lane.

    A wait for stage S becomes spans of "S.wait" (S's group; a scoring wait carries the part of S's work done
    meanwhile), waiting while the device ran nothing "device.latency" (overhead). Giving work to the device is the
    host's own work. With a NullLane nothing is recorded and no event is made. `worst_ns`: by how much mapped times had
    to be mended (work cannot begin before it was given, nor end after it was seen done); more than the clock pairs'
    uncertainty means that the clocks are not linear. `events`: timed events, each of `ns_per_event`; `recording_ns`:
    cost of the ends of blocks.
    """

    def __init__(self, recorder: Recorder, device: DeviceClock, host: Lane | NullLane, streams: Sequence[str]) -> None:
        self.clock_map = ClockMap()
        self.worst_ns = 0
        self.events = self.recording_ns = 0
        self._recorder, self._device, self._host = recorder, device, host
        self._now = recorder.clock
        self.recording = not isinstance(host, NullLane)
        self._lanes = [_lane(recorder, name) if self.recording else NullLane(name, DEVICE) for name in streams]
        self._free = [0] * len(streams)
        self._latest: list[_Item | None] = [None] * len(streams)
        self._items: list[_Item] = []
        self._waits: list[Wait] = []
        self._keys = 0
        self._stages: dict[tuple[str, int], int] = {}
        self._pair_due = 0
        self.ns_per_event = ns_per_event(device, self._now) if self.recording else 0.0
        if self.recording and not device.host_time:
            self._take_pair()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Nothing that is given in the context is recorded (warming up)."""
        before, self.recording = self.recording, False
        try:
            yield
        finally:
            self.recording = before

    def begin(self, stream: int, directly: bool = False) -> tuple[int, Event]:
        """A piece of work is given to `stream` from now on, for `end`: together one span. Only while recording.

        Waits of the stream for other streams belong before. `directly`: nothing was given to the stream since the piece
        before; while it is busy with that one, its end is this one's beginning, which saves a timed event.
        """
        given_ns, latest = self._now(), self._latest[stream]
        if directly and latest is not None and not self._device.is_complete(latest.ended):
            latest.passed_on = True
            return given_ns, latest.ended
        self.events += 1
        return given_ns, self._device.record(stream)

    def end(
        self,
        given_ns: int,
        began: Event,
        stage: int,
        stream: int,
        first_frame: int,
        frames: int,
        work: tuple[int, int, int],
        transfer: bool = False,
        parts: Sequence[Part] = (),
    ) -> None:
        """All of the piece of work has been given.

        `parts`, which may be filled until `resolve`: on the stream's lane they stand one after another in place of as
        much of the piece's own span; waits are for the piece.
        """
        ended = self._device.record(stream)
        self.events += 1
        if self._device.blocking:
            self._waits.append(Wait(stream, given_ns, self._now()))
        key = self._keys = self._keys + 1
        item = _Item(
            stream, stage, self._host.epoch, given_ns, began, ended, first_frame, frames, work, transfer, key, parts
        )
        self._items.append(item)
        self._latest[stream] = item

    @contextmanager
    def transfer(
        self,
        stage: int,
        size: int,
        pinned: bool,
        stream: int = 0,
        first_frame: int = 0,
        frames: int = 0,
        *,
        blocking: bool = False,
        directly: bool = False,
    ) -> Iterator[None]:
        """What the context gives to `stream` is a copy of `size` bytes, one span of `stage`.

        `blocking`: the host waits for it. `directly`: as `begin` says.
        The context gives the copy to the stream and does not wait: the event behind it would come too
        late. A copy that cannot but block (device to pageable memory) is longer by the way back.
        """
        if not 0 <= size <= _LARGEST:
            raise ValueError(f"a copy of {size} bytes does not fit a span; split it below 4 GiB")
        start = self._now()
        work = (size, size if pinned else 0, 0)
        if self.recording:
            given, began = self.begin(stream, directly)
        yield
        if self.recording:
            self.end(given, began, stage, stream, first_frame, frames, work, transfer=True)
        if blocking:
            event = self._items[-1].ended if self.recording else self._device.mark(stream)
            self._device.wait(event)
            # Where recording blocks, the whole piece was a wait already.
            if self.recording and not self._device.blocking:
                self._waits.append(Wait(stream, start, self._now()))

    @contextmanager
    def waiting(self, stream: int | None = None) -> Iterator[None]:
        """The host does nothing but wait in the context: for a stream, or for the whole device."""
        start = self._now()
        yield
        if self.recording:
            self._waits.append(Wait(stream, start, self._now()))

    def resolve(self, first_frame: int = 0, frames: int = 0) -> None:
        """Record what is done by now; at the end of the block of these frames, before its own span.

        Work still under way is recorded after a later block. A wait is charged by what is known now;
        whoever waited for work knows that it is done. What that takes the host is a span of RECORDING.
        """
        if not self.recording:
            return
        timed = not self._device.host_time
        if timed and self._items and self._now() >= self._pair_due + PAIR_LATEST_NS:
            # Only an idle device gives a clock pair.
            for stream in range(len(self._lanes)):
                with self.waiting(stream):
                    self._device.wait(self._device.mark(stream))
        begin = self._now()
        self._record(first_frame, frames, timed)
        end = self._now()
        if end > begin:
            self._host.put(self._stage(RECORDING, "overhead", RECORDS), begin, end, first_frame, frames)
            self.recording_ns += end - begin

    def _record(self, first_frame: int, frames: int, timed: bool) -> None:
        done, self._items = self._split()
        # Read before any pair is taken: a device counts from its latest event then, and none may lie before it.
        times = [(self._device.time_ns(item.began), self._device.time_ns(item.ended)) for item in done]
        if timed and not self._items and self._now() >= self._pair_due:
            self._take_pair()
        latest = self._now()
        ran = [self._mapped(item, at, latest) for item, at in zip(done, times, strict=True)]
        self._let_go(done)
        waited = self._charge_waits(done, ran, first_frame, frames)
        for item, busy in zip(done, ran, strict=True):
            if item.transfer:
                unwaited = busy.end_ns - busy.start_ns - waited.get(item.key, 0)
                item.work = *item.work[:2], min(max(unwaited, 0), _LARGEST)
            lane = self._lanes[item.stream]
            if lane.epoch != item.epoch:
                lane.epoch = item.epoch
            for stage, start, end, work in _placed(item, busy):
                lane.put(stage, start, end, item.first_frame, item.frames, *work)

    def _charge_waits(
        self, done: Sequence[_Item], ran: Sequence[Busy], first_frame: int, frames: int
    ) -> dict[int, int]:
        """Record each wait as the work that `ran` meanwhile; returns the waiting time of each work by key, ns."""
        recorder, epoch = self._recorder, self._host.epoch
        waited: dict[int, int] = {}
        counts = {item.key: item.work for item in done}
        for busy, start, end in charge(self._waits, ran):
            work: list[int] = []
            if busy is None:
                stage = self._stage(LATENCY, "overhead", IDLE)
            else:
                waited[busy.key] = waited.get(busy.key, 0) + end - start
                device_stage = recorder.stages[busy.stage]
                if device_stage.group == "scoring":
                    law = recorder.cost_of(busy.stage, epoch)
                    names = [f"{name} meanwhile" for name in device_stage.work]
                    share = (end - start) / (busy.end_ns - busy.start_ns)
                    work = [round(count * share) for count in counts[busy.key]]
                else:
                    law, names = None, []
                stage = self._stage(device_stage.name + WAIT, device_stage.group, law or WAITED, names)
            self._host.put(stage, start, end, first_frame, frames, *work)
        self._waits = []
        return waited

    def _split(self) -> tuple[list[_Item], list[_Item]]:
        """Return the work that is done and the rest; a stream's work ends in order."""
        done, rest, open_streams = [], [], set()
        for item in self._items:
            if item.stream not in open_streams and self._device.is_complete(item.ended):
                done.append(item)
            else:
                open_streams.add(item.stream)
                rest.append(item)
        return done, rest

    def _mapped(self, item: _Item, times: tuple[int, int], latest: int) -> Busy:
        start, end = times if self._device.host_time else map(self.clock_map.to_host, times)
        fitted_start = min(max(start, item.given_ns, self._free[item.stream]), latest)
        fitted_end = min(max(end, fitted_start), latest)
        self.worst_ns = max(self.worst_ns, abs(fitted_start - start), abs(fitted_end - end))
        self._free[item.stream] = fitted_end
        return Busy(item.stream, item.stage, fitted_start, fitted_end, item.transfer, item.key)

    def _let_go(self, done: list[_Item]) -> None:
        """Give the events back whose times are known; count from one that no open work lies before."""
        last = {item.stream: item.ended for item in done}
        open_streams = {item.stream for item in self._items}
        if done and open_streams <= last.keys():
            ends = [last[stream] for stream in open_streams or {done[-1].stream}]
            self._device.rebase(min(ends, key=self._device.time_ns))
        for item in done:
            self._device.recycle(item.began)
            if not item.passed_on:
                self._device.recycle(item.ended)
            if self._latest[item.stream] is item:
                self._latest[item.stream] = None

    def _stage(self, name: str, group: str, law: Cost, work: Sequence[str] = ()) -> int:
        """A stage of the host's lane; its law is known by its first span."""
        key = name, self._host.epoch
        if key not in self._stages:
            self._stages[key] = self._recorder.stage(name, group, tuple(work))
            self._recorder.cost(self._stages[key], self._host.epoch, law)
        return self._stages[key]

    def _take_pair(self) -> None:
        pair = measure_pair(self._device, self._now)
        self.clock_map.add(pair)
        # Work of this block began before the pair before this one at the earliest.
        if len(self.clock_map.pairs) > 3:
            self.clock_map.forget_before(self.clock_map.pairs[-2].device_ns)
        self._pair_due = self._now() + PAIR_EVERY_NS


def _placed(item: _Item, busy: Busy) -> Iterator[tuple[int, int, int, tuple[int, int, int]]]:
    """The spans of a piece of work: its parts, all shorter where they took longer than the piece, and its rest."""
    spent = busy.end_ns - busy.start_ns
    scale = min(1.0, spent / max(sum(part.ns for part in item.parts), 1))
    start, passed = busy.start_ns, 0
    for part in item.parts:
        passed += part.ns
        end = busy.start_ns + min(round(passed * scale), spent)
        yield part.stage, start, end, part.work
        start = end
    if start < busy.end_ns or not item.parts:
        yield item.stage, start, busy.end_ns, item.work


def _lane(recorder: Recorder, name: str) -> Lane:
    lanes = (lane for lane in recorder.lanes if (lane.name, lane.kind) == (name, DEVICE))
    return next(lanes, None) or recorder.lane(name, kind=DEVICE)
