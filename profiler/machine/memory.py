"""Resident memory of this process by the parts of a program that hold it, from Linux' /proc.

A part is some objects and all that they lead to: arrays, tensors, containers and objects of the program's own packages.
Each block of memory is counted once, for the first part that leads to it. What no part leads to is the memory of Python
and the libraries, and the pages of files that they map. Of a large block only the pages count that are there
(`/proc/self/pagemap`, proc(5)); small blocks and Python's own objects count as they are, without what their allocator
wastes. A library's memory behind an opaque object (a session of ONNX Runtime) is the library's.
"""

import gc
import mmap
import os
import re
import sys
import time
from bisect import bisect, bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import CellType, FunctionType, MappingProxyType, MethodType
from typing import Final, NamedTuple

import numpy as np

from profiler.arrays import Array
from profiler.clock import now_ns

Parts = Iterable[tuple[str, Sequence[object]]]  # Names and objects in order of precedence; a name may come back

PROC: Final = Path("/proc/self")
PAGE: Final = mmap.PAGESIZE
LARGE: Final = 1 << 16  # Bytes from which a block is looked up by page; smaller ones are nearly all in use

PRESENT, FROM_FILE, OWN = (np.uint64(1 << bit) for bit in (63, 61, 56))
"""Bits of a page in pagemap. Memory that was read before it was written is one page of zeros for everybody: it is
present, not the process's own, and, if it is huge, looks as if it came from a file."""

SHARE: Final = 0.01  # Readings take at most this part of a processor's time: the next one waits accordingly

LIBRARIES, FILES, PEAK, DEVICE = "libraries", "files", "peak", "device"
"""What no part holds, in memory and as pages of files; the most that was ever resident; on accelerators."""
OTHER: Final = "other"

_CONTAINERS: Final = (list, tuple, dict, set, frozenset, deque, MappingProxyType, CellType, partial, MethodType)
_SIMPLE: Final = {str, bytes, int, float, bool, complex, type(None)}
_MANY: Final = 1000  # Elements from which a tuple of simple values (the words of a graph) is added up only once
PART: Final = re.compile(r"memory\.(\w+)_bytes")  # Sample of a part; the other way round: `sample_name`


def sample_name(part: str) -> str:
    """The name under which a session has the bytes of a part."""
    return f"memory.{part}_bytes"


class Held(NamedTuple):
    """Bytes of a part that are resident, those of them that are pages of a file, and those that it has reserved."""

    used: int
    mapped: int
    reserved: int


class Totals(NamedTuple):
    """Resident bytes of a process, those of them that are of no file, and the most that were ever resident."""

    resident: int
    anonymous: int
    peak: int


class Usage(NamedTuple):
    """What the parts hold, what the process has, and bytes of the parts' tensors on accelerators."""

    parts: dict[str, Held]
    totals: Totals
    device: int

    def values(self) -> dict[str, float]:
        """The samples of a session; those of parts, libraries and files add up to the resident memory."""
        used = {name: held.used for name, held in self.parts.items()}
        mapped = sum(held.mapped for held in self.parts.values())
        rest = self.totals.anonymous - (sum(used.values()) - mapped)
        files = self.totals.resident - self.totals.anonymous - mapped
        values = {**used, LIBRARIES: max(rest, 0), FILES: max(files, 0), PEAK: self.totals.peak}
        if self.device:
            values[DEVICE] = self.device
        return {sample_name(name): float(size) for name, size in values.items()}


class Meter:
    """Reads what the parts hold, as seldom as `SHARE` asks for; OSError where the system does not tell."""

    def __init__(
        self,
        parts: Callable[[], Parts],
        packages: Collection[str],
        clock: Callable[[], int] = now_ns,
        spent: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        """`packages`: names of the top packages whose objects are followed; `spent`: processor time of the thread."""
        self._parts, self._packages, self._clock, self._spent = parts, frozenset(packages), clock, spent
        self._known: dict[int, tuple[object, int]] = {}
        self._due_ns = 0

    def read(self) -> dict[str, float]:
        """For a Sampler: the samples (`Usage.values`), or none while the next reading is not due."""
        if self._clock() < self._due_ns:
            return {}
        return self.measure().values()

    def measure(self) -> Usage:
        """Look at every block now."""
        begin = self._spent()
        walk = _Walk(self._packages, self._known)
        for name, objects in self._parts():
            walk.follow(name, objects)
        self._known = walk.added
        held = {name: Held(size, 0, size) for name, size in walk.small.items()}
        with (PROC / "pagemap").open("rb", buffering=0) as pagemap:
            for block in _apart(walk.blocks):
                own, mapped = _pages(pagemap.fileno(), block)
                used, of_files, reserved = held[block.part]
                held[block.part] = Held(used + own + mapped, of_files + mapped, reserved + block.size)
        usage = Usage(held, totals(), sum(walk.on_devices.values()))
        self._due_ns = self._clock() + round((self._spent() - begin) / SHARE)
        return usage


def totals(proc: Path = PROC) -> Totals:
    """The kernel's counts of the process; OSError without. `smaps_rollup` has the same, a hundred times slower."""
    sizes = {}
    for line in (proc / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if value.endswith("kB"):
            sizes[name] = int(value.split()[0]) << 10
    try:
        return Totals(sizes["VmRSS"], sizes["RssAnon"], sizes["VmHWM"])
    except KeyError as missing:
        raise OSError(f"{proc} does not tell {missing}") from None


def mappings(proc: Path = PROC) -> dict[str, int]:
    """Resident bytes of `heap`, compiled `code`, libraries by package and `other` files; OSError where not shown."""
    sizes: dict[str, int] = defaultdict(int)
    name, executable = "", False
    for line in (proc / "smaps").read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if " " in key:
            fields = line.split(maxsplit=5)
            name, executable = fields[5] if len(fields) > 5 else "", "x" in fields[1]
        elif key == "Rss":
            sizes[_called(name, executable)] += int(value.split()[0]) << 10
    return {name: size for name, size in sizes.items() if size}


def _called(path: str, executable: bool) -> str:
    if not path.startswith("/"):
        return "code" if executable and path != "[vdso]" else "heap"
    _, installed, inside = path.rpartition("/site-packages/")
    if installed:
        return inside.partition("/")[0].removesuffix(".libs")
    name, library, _ = Path(path).name.partition(".so")
    return name if library else OTHER


class Block(NamedTuple):
    """A stretch of memory; `maps`: whether it may show a file."""

    address: int
    size: int
    part: str
    maps: bool = False


class _Walk:
    """Follows objects and notes the blocks of memory that they hold."""

    def __init__(self, packages: frozenset[str], known: dict[int, tuple[object, int]]) -> None:
        self._packages, self._known = packages, known
        self.added: dict[int, tuple[object, int]] = {}  # Tuples added up, by id; kept, so that ids stay theirs
        self.blocks: list[Block] = []  # The large blocks in order of precedence
        self.small: dict[str, int] = defaultdict(int)
        self.on_devices: dict[int, int] = {}
        self._met: set[int] = set()

    def follow(self, part: str, objects: Sequence[object]) -> None:
        """Count all that these lead to, and nobody led to before."""
        waiting, met, size = [*objects], self._met, 0
        tensor = getattr(sys.modules.get("torch"), "Tensor", ())
        while waiting:
            one = waiting.pop()
            if id(one) in met:
                continue
            met.add(id(one))
            kind = type(one)
            if kind in _SIMPLE:
                size += sys.getsizeof(one)
            elif isinstance(one, np.ndarray):
                size += self._array(part, one)
                if one.dtype.hasobject:
                    waiting.extend(one.ravel().tolist())
            elif isinstance(one, tensor):
                self._tensor(part, one)
            elif kind is tuple and len(one) >= _MANY and (added := self._added_up(one)):  # type: ignore[arg-type]
                size += added
            elif isinstance(one, FunctionType):
                waiting.extend(one.__closure__ or ())
            elif isinstance(one, _CONTAINERS) or kind.__module__.partition(".")[0] in self._packages:
                size += sys.getsizeof(one)
                waiting.extend(referent for referent in gc.get_referents(one) if not isinstance(referent, type))
        self.small[part] += size

    def _array(self, part: str, array: Array) -> int:
        """Note the memory that `array` is a view of; returns its bytes if it is small."""
        view = array
        while isinstance(array.base, np.ndarray):
            array = array.base
        if array is not view:
            if id(array) in self._met:
                return 0
            self._met.add(id(array))
        if array.nbytes < LARGE:
            return array.nbytes
        maps = isinstance(getattr(array.base, "obj", array.base), mmap.mmap)
        self.blocks.append(Block(array.__array_interface__["data"][0], array.nbytes, part, maps))
        return 0

    def _tensor(self, part: str, tensor: object) -> None:
        storage = tensor.untyped_storage()  # type: ignore[attr-defined]
        address, size = storage.data_ptr(), storage.nbytes()
        if storage.device.type != "cpu":
            self.on_devices[address] = size
        elif address:
            self.blocks.append(Block(address, size, part, True))

    def _added_up(self, values: tuple[object, ...]) -> int:
        """Bytes of a tuple of simple values, which never change; 0 if there are others among them."""
        known = self._known.get(id(values))
        if known is None:
            simple = set(map(type, values)) <= _SIMPLE
            known = values, sys.getsizeof(values) + sum(map(sys.getsizeof, values)) if simple else 0
        self.added[id(values)] = known
        return known[1]


def _apart(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks without what earlier ones cover."""
    covered: list[tuple[int, int]] = []
    for block in blocks:
        begin, end = block.address, block.address + block.size
        first = bisect(covered, begin, key=itemgetter(1))
        last = bisect_left(covered, end, key=itemgetter(0))
        edges = [begin, *(edge for one in covered[first:last] for edge in one), end]
        pieces = [(left, right) for left, right in zip(edges[::2], edges[1::2], strict=True) if left < right]
        covered[first:last] = sorted([*covered[first:last], *pieces])
        for left, right in pieces:
            yield block._replace(address=left, size=right - left)


def _pages(pagemap: int, block: Block) -> tuple[int, int]:
    """Resident bytes of a block: the process's own, and pages of files."""
    begin, end = block.address, block.address + block.size
    first, last = begin // PAGE, -(-end // PAGE)
    entries = np.frombuffer(os.pread(pagemap, 8 * (last - first), 8 * first), np.uint64)
    outside = begin - first * PAGE, last * PAGE - end
    present, of_file = entries & PRESENT != 0, entries & FROM_FILE != 0
    own = present & ~of_file & (entries & OWN != 0)

    def inside(pages: Array) -> int:
        count = int(np.count_nonzero(pages)) * PAGE
        ends = [out for out, there in zip(outside, pages[[0, -1]].tolist(), strict=True) if there] if len(pages) else []
        return count - sum(ends)

    return inside(own), inside(present & of_file) if block.maps else 0
