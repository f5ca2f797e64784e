"""Which part of a program holds which memory, held against what the kernel says of the whole process."""

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from profiler.arrays import Array
from profiler.machine import memory
from profiler.machine.memory import FILES, LARGE, LIBRARIES, PAGE, Block, Held, Meter, Totals, Usage, sample_name
from tests.each import each

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/pagemap").exists(), reason="only Linux tells which pages of a process are there"
)

MB = 1 << 20


class Model:
    """An object of the packages that are followed."""

    def __init__(self, *held: object) -> None:
        self.held = held


def meter(*parts: tuple[str, list[object]]) -> Meter:
    return Meter(lambda: parts, [Model.__module__.partition(".")[0]])


def held(*objects: object) -> Held:
    return meter(("part", [*objects])).measure().parts["part"]


def written(size: int) -> Array:
    return np.ones(size, np.uint8)


def smaps_rollup() -> dict[str, int]:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    return {key: int(value.split()[0]) << 10 for key, value in (line.split(":") for line in lines)}


def test_of_memory_that_is_reserved_only_the_pages_written_count():
    # Smaller ones may lie where the heap has pages that were written before.
    block = np.empty(256 * MB, np.uint8)
    block[: 10 * MB] = 1
    one = held(block)
    # The kernel may have given pages of 2 MB.
    assert 10 * MB <= one.used <= 14 * MB
    assert 256 * MB <= one.reserved < 257 * MB
    # Pages that were only read are all the same one.
    zeros = np.zeros(256 * MB, np.uint8)
    assert int(zeros.sum()) == 0
    assert held(zeros).used < MB


def test_a_block_counts_once_whatever_leads_to_it():
    block = written(8 * MB)
    views = (block[: 4 * MB], block.reshape(2, -1).T, block.view(np.float32)[::2])
    views = (*views, np.frombuffer(memoryview(block), np.uint8))
    one = held({"views": views}, partial(print, block), lambda: block, Model([block]).held.index)
    assert 8 * MB <= one.used < 8.1 * MB
    usage = meter(("first", [views[0]]), ("second", [block, written(MB)]), ("first", [written(2 * MB)])).measure()
    assert 10 * MB <= usage.parts["first"].used < 10.1 * MB
    assert MB <= usage.parts["second"].used < 1.1 * MB
    # Objects of other packages and their classes are not followed.
    assert held(SimpleNamespace(block=block), sys, Model).used < 10_000


@each(
    "blocks, apart",
    [
        ([(0, 10, "a"), (0, 10, "b")], [(0, 10, "a")]),
        ([(4, 2, "a"), (0, 10, "b")], [(4, 2, "a"), (0, 4, "b"), (6, 4, "b")]),
        ([(0, 4, "a"), (6, 4, "a"), (2, 6, "b")], [(0, 4, "a"), (6, 4, "a"), (4, 2, "b")]),
        ([(0, 10, "a"), (2, 3, "b"), (10, 1, "c")], [(0, 10, "a"), (10, 1, "c")]),
    ],
)
def test_what_an_earlier_block_covers_is_left_out(blocks, apart):
    assert [one[:3] for one in memory._apart(Block(*one) for one in blocks)] == apart


def test_words_are_added_up_once():
    words = tuple(f"word {n}" for n in range(5000))
    reader = meter(("graph", [words]))
    first = reader.measure().parts["graph"].used
    assert first == sys.getsizeof(words) + sum(map(sys.getsizeof, words))
    assert reader.measure().parts["graph"].used == first
    assert [*reader._known] == [id(words)]


def test_a_mapped_file_is_memory_of_a_file(tmp_path):
    (tmp_path / "graph").write_bytes(bytes(4 * MB))
    mapped = np.memmap(tmp_path / "graph", np.uint8, "r")
    assert int(mapped.sum()) == 0
    one = held(mapped)
    assert one.used >= one.mapped >= 3.9 * MB


def test_the_tensors_of_a_device_count_apart(monkeypatch):
    class Tensor:
        def __init__(self, device: str, address: int, size: int) -> None:
            where = SimpleNamespace(type=device)
            storage = SimpleNamespace(device=where, data_ptr=lambda: address, nbytes=lambda: size)
            self.untyped_storage = lambda: storage

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Tensor))
    block = written(4 * MB)
    here = Tensor("cpu", block.ctypes.data, block.nbytes)
    usage = meter(("model", [here, Tensor("cuda", 1 << 40, 3 * MB), Tensor("cuda", 1 << 40, 3 * MB)])).measure()
    assert 4 * MB <= usage.parts["model"].used < 4.1 * MB
    assert usage.values()["memory.device_bytes"] == 3 * MB


def test_parts_and_the_rest_are_the_resident_memory_that_smaps_has():
    planted = Model(written(256 * MB))  # of 64 the heap may keep the pages
    reader = meter(("planted", [planted]))
    with_it, kernel = reader.measure(), smaps_rollup()
    values = with_it.values()
    together = sum(values[sample_name(name)] for name in ("planted", LIBRARIES, FILES))
    assert together == pytest.approx(kernel["Rss"], rel=0.05)
    assert with_it.totals.anonymous == pytest.approx(kernel["Anonymous"], rel=0.05)
    planted.held = ()
    without, kernel_without = reader.measure(), smaps_rollup()
    assert with_it.parts["planted"].used - without.parts["planted"].used == pytest.approx(256 * MB, rel=0.05)
    assert kernel["Rss"] - kernel_without["Rss"] == pytest.approx(256 * MB, rel=0.05)


def test_the_samples_of_a_usage_add_up_and_readings_take_a_hundredth_of_the_time():
    usage = Usage({"model": Held(50, 0, 80), "graph": Held(20, 15, 20)}, Totals(200, 120, 260), 0)
    parts = {"model": 50, "graph": 20, "libraries": 65, "files": 65, "peak": 260}
    assert usage.values() == {f"memory.{name}_bytes": size for name, size in parts.items()}
    now, spent = [0], iter(range(0, 10**9, 1000))
    reader = Meter(list, (), clock=lambda: now[0], spent=lambda: next(spent))
    readings = []
    for now[0] in (0, 99_999, 100_000):
        readings.append(bool(reader.read()))
    assert readings == [True, False, True]


def test_small_blocks_count_as_they_are_and_the_ends_of_large_ones_are_cut():
    small = np.ones(LARGE // 2, np.uint8)
    assert held(small).used == small.nbytes
    block = written(4 * MB)[100 : 100 + MB]
    assert held(block).used >= 4 * MB, "the memory that a view keeps alive"
    with (memory.PROC / "pagemap").open("rb", buffering=0) as pagemap:
        part = Block(block.ctypes.data, 10 * PAGE + 17, "", True)
        assert memory._pages(pagemap.fileno(), part) == (10 * PAGE + 17, 0)


def test_mappings_by_library(tmp_path):
    rows = {
        "5500-5600 rw-p 00000000 00:00 0 [heap]": 30,
        "7000-7100 rw-p 00000000 00:00 0": 12,
        "7100-7200 r-xp 00000000 00:00 0": 8,
        "7200-7300 r--p 00000000 00:00 0": 0,
        "7300-7400 r-xp 0 fe:00 1 /v/lib/python3.11/site-packages/numpy.libs/libopenblas.so.0": 40,
        "7400-7500 r--p 0 fe:00 1 /v/lib/python3.11/site-packages/numpy/_core/x y.so": 4,
        "7500-7600 r-xp 0 fe:00 1 /usr/lib/libc.so.6 (deleted)": 16,
        "7600-7700 r--p 0 fe:00 1 /cache/graph-0123.kept": 20,
    }
    text = "".join(f"{head}\nSize: 100 kB\nRss:   {size} kB\nVmFlags: rd ex\n" for head, size in rows.items())
    (tmp_path / "smaps").write_text(text)
    kilo = {name: size >> 10 for name, size in memory.mappings(tmp_path).items()}
    assert kilo == {"heap": 42, "code": 8, "numpy": 44, "libc": 16, "other": 20}
    # A system that does not tell.
    with pytest.raises(OSError):
        memory.totals(tmp_path)
    (tmp_path / "status").write_text("VmRSS:\t  100 kB\nThreads:\t1\n")
    with pytest.raises(OSError, match="RssAnon"):
        memory.totals(tmp_path)
