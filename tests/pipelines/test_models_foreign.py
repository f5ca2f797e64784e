"""Nets of strangers in a process with bounds: what is sound comes back, what asks for too much is one sentence."""

import json
import os
import resource
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil
import pytest
from safetensors.numpy import save_file

from pipelines.models import foreign, nets
from pipelines.models.nets import Layer
from pipelines.models.onnx import graph as onnx
from pipelines.scoring.blocks import MAX_FRAMES
from profiler.arrays import Array
from profiler.errors import Cancelled
from profiler.process.children import ROOT
from tests.each import each
from tests.pipelines import onnx_files
from tests.pipelines.net_files import card, net, write
from tests.pipelines.onnx_files import model, needs_onnx, node, tensor
from tests.pipelines.refusing import refusal

MADE = net(card(Layer(16), Layer(8, relu=False), heads=2))
INPUTS, SENONES = MADE.card.inputs, MADE.card.senones
pytestmark = pytest.mark.skipif(os.name != "posix", reason="memory is bounded where there are limits")


@pytest.fixture(autouse=True)
def nets_read_here() -> None:
    """Not here: the process that reads them is what is tried."""


def refused(path: Path) -> str:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    message = refusal(r"\.$", foreign.load, path, SENONES, 39, MAX_FRAMES)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert used < foreign.CPU_SECONDS + 5
    assert str(path.with_suffix("")) in message  # the net or its card
    assert len(message) < 1000
    return message


def test_tensors_come_back_as_the_reader_in_this_process_gives_them(tmp_path):
    path = write(tmp_path, MADE)
    found, wanted = foreign.load(path, SENONES, 39, MAX_FRAMES), nets.load(path)
    assert (found.name, found.card, set(found.tensors)) == (wanted.name, wanted.card, set(wanted.tensors))
    for name, values in wanted.tensors.items():
        np.testing.assert_array_equal(found.tensors[name], values)
        assert found.tensors[name].flags.writeable


@needs_onnx
def test_a_graph_comes_back_as_the_reader_in_this_process_gives_it(tmp_path):
    path = onnx_files.write(tmp_path, net(card(Layer(16))))
    found, wanted = foreign.load(path, SENONES, 39, MAX_FRAMES), onnx.load(path)
    assert found == wanted


def test_it_can_be_cancelled_and_leaves_no_process(tmp_path):
    before = psutil.Process().children()
    calls = iter([False, True])
    with pytest.raises(Cancelled):
        foreign.load(write(tmp_path, MADE), SENONES, 39, MAX_FRAMES, lambda: next(calls))
    assert psutil.Process().children() == before


def test_the_sentence_of_the_reader_comes_back(tmp_path):
    path = write(tmp_path, MADE)
    refusal("scores 50 senones and the acoustic model has 51", foreign.load, path, 51, 39, MAX_FRAMES)
    path.write_bytes(path.read_bytes()[:-5])
    assert "is not a whole safetensors file" in refused(path)


def graph(folder: Path, nodes: Sequence[bytes], *constants: bytes) -> Path:
    return onnx_files.write(folder, net(card()), model(nodes, constants))


WEIGHT = tensor("w", np.zeros((INPUTS, SENONES), np.float32))


def largest(folder: Path, nodes: Sequence[bytes], **constants: Array) -> Path:
    """A sound product, and the largest value of the last node's output added to it."""
    last = [node("ReduceMax", ["p"], ["m"]), node("MatMul", ["x", "w"], ["z"]), node("Add", ["z", "m"], ["y"])]
    return graph(folder, [*nodes, *last], WEIGHT, *(tensor(name, values) for name, values in constants.items()))


def doubling(folder: Path) -> Path:
    """2³⁰ times as many columns."""
    rows = ["x", *(f"d{i}" for i in range(29)), "p"]
    return largest(folder, [node("Concat", [a, a], [b], axis=1) for a, b in pairwise(rows)])


def gathering(folder: Path) -> Path:
    """Each time as many rows as there are indices."""
    return largest(folder, [node("Gather", ["w", "i"], ["p"])], i=np.zeros(4_000_000, np.int64))


def folding(folder: Path) -> Path:
    """Constants that are multiplied before the first frame: [30 000, 1] · [1, 30 000]."""
    column, row = np.ones((30_000, 1), np.float32), np.ones((1, 30_000), np.float32)
    return largest(folder, [node("MatMul", ["c", "r"], ["p"])], c=column, r=row)


def broadcasting(folder: Path) -> Path:
    """[n, 1, 234] and [200 000, 1] make [n, 200 000, 234]."""
    nodes = [node("Unsqueeze", ["x", "axes"], ["u"]), node("Add", ["u", "many"], ["p"])]
    return largest(folder, nodes, many=np.ones((200_000, 1), np.float32), axes=np.array([1]))


def repeating(folder: Path) -> Path:
    """3 000 products that share one weight of 9 MB: 27 GFLOP for a frame, 56 000 for all that are tried."""
    shapes = {"f": (INPUTS, 1500), "s": (1500, 1500), "l": (1500, SENONES)}
    weights = [tensor(name, np.zeros(shape, np.float32)) for name, shape in shapes.items()]
    rows = ["a", *(f"p{i}" for i in range(3000))]
    nodes = [node("MatMul", ["x", "f"], ["a"])]
    nodes += [node("MatMul", [a, "s"], [b]) for a, b in pairwise(rows)]
    nodes += [node("MatMul", [rows[-1], "l"], ["y"])]
    return graph(folder, nodes, *weights)


def uneven(folder: Path) -> Path:
    """Nothing for one frame, half a terabyte for 37: sizes follow from the number of frames."""
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Slice", ["shape", "zero", "one"], ["n"]),
        node("Pow", ["base", "n"], ["many"]),
        node("Slice", ["w", "zero", "many"], ["v"]),
        node("Gather", ["v", "i"], ["p"]),
    ]
    numbers = {"base": 2, "zero": [0], "one": [1], "i": [0] * 9_000_000}
    return largest(folder, nodes, **{name: np.array(n) for name, n in numbers.items()})


@pytest.mark.slow
@pytest.mark.parametrize("bomb", [doubling, gathering, folding, broadcasting, repeating, uneven])
def test_a_graph_that_asks_for_too_much_is_one_sentence(tmp_path, bomb, monkeypatch):
    """Read in this process they took 4 to 8 GB, or more than a minute."""
    path = bomb(tmp_path)
    assert path.stat().st_size < 80 << 20
    if bomb is not repeating:
        refused(path)
        return
    # The child, and who waits for it, have two seconds of processor time: what takes minutes is over sooner.
    code = f"import {foreign.__name__} as f; f.CPU_SECONDS = 2; raise SystemExit(f.main())"
    started = foreign.children.python
    monkeypatch.setattr(foreign, "CPU_SECONDS", 2)
    monkeypatch.setattr(foreign.children, "python", lambda _m, _name, *words: started("-c", code, *words))
    assert "takes over 2 s to read" in refused(path)


def test_a_net_has_the_time_and_memory_that_are_promised():
    promise = (ROOT / "SECURITY.md").read_text("utf-8")
    gigabytes = foreign.MEMORY_BYTES / (1000 << 20)
    assert f"with {gigabytes:.1f} GB of memory and {foreign.CPU_SECONDS} s of" in promise


@each("second, bits", [(20_000, nets.BLOCK), (65_000, nets.BLOCK), (1_500, 1)])
def test_weights_that_are_all_zero_are_counted_before_they_are_made(tmp_path, second, bits):
    """11 MB of masks, a bit for sixteen weights, took 6.4 GB."""
    wide = card(Layer(60_000), Layer(second), senones=SENONES)
    path = tmp_path / "made.safetensors"
    path.with_suffix(".json").write_bytes(msgspec.json.encode(wide))
    tensors: dict[str, Any] = {}
    for name, shape in wide.shapes.items():
        if len(shape) == 2:
            tensors[name + nets.MASK] = np.zeros((-(-shape[0] // bits), -(-shape[1] // 8)), np.uint8)
            tensors[name + nets.KEPT] = np.zeros(0, np.float16)
        else:
            tensors[name] = np.zeros(shape, np.float16)
    save_file(tensors, path)
    assert "weights; at most 50,331,648 are read" in refused(path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", nets.SUFFIXES)
def test_pipes_and_devices_are_refused_unread(tmp_path, suffix):
    path = write(tmp_path, MADE).with_suffix(suffix)
    single = json.loads(path.with_suffix(".json").read_text()) | {"heads": 1, "layers": []}
    path.with_suffix(".json").write_text(json.dumps(single))
    for place in (path, path.with_suffix(".json")):
        for make in (os.mkfifo, lambda name: Path(name).symlink_to("/dev/zero")):
            place.unlink(missing_ok=True)
            make(place)
            assert "pipe or a device" in refused(path)
            refusal("There is no net", nets.find, str(path))
