"""Nets of strangers: cards, safetensors files and ONNX graphs, spoiled, and made to take all memory or time."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from safetensors.numpy import save_file

from pipelines.models import nets
from pipelines.models.nets import Layer
from tests.bench.campaign import _damage
from tests.bench.campaign.attack import SPEECH, Attack
from tests.pipelines import net_files, onnx_files
from tests.pipelines.onnx_files import ends, integer, model, node, part, tensor

SENONES = 5126
Make = Callable[[Path, random.Random], None]


def run(name: str) -> tuple[str, ...]:
    """A run that scores by the net `name` in the folder."""
    small = ("--set", "graph.vocabulary=60", "--set", "graph.bigrams=200", "--no-profile", "--json")
    plain = ("--set", "dnn.senones=all") if name.endswith(".onnx") else ()
    return "run", "--preset", "dnn", "--set", f"dnn.net={name}", "--audio", SPEECH, *plain, *small


def card(*layers: Layer, **more: Any) -> nets.Card:
    return net_files.card(*layers, **{"senones": SENONES, **more})


def small() -> nets.Net:
    return net_files.net(card(Layer(8)))


# -- cards and safetensors files ----------------------------------------------------------------------


def sound(place: Path, rng: random.Random) -> None:
    net_files.write(place, small())


def card_value(place: Path, rng: random.Random) -> None:
    """One value of the card of another type, or beyond all bounds."""
    path = net_files.write(place, small()).with_suffix(".json")
    tree = json.loads(path.read_text())
    values = (None, -1, 0, 10**9, 10**400, 1e308, "x", "\x1b[2J", [], [1] * 9000, {}, True, [None])
    tree[rng.choice([*tree, "unknown"])] = rng.choice(values)
    path.write_text(json.dumps(tree))


def card_text(place: Path, rng: random.Random) -> None:
    path = net_files.write(place, small()).with_suffix(".json")
    deep = "[" * 50_000 + "]" * 50_000
    surrogate = "\ud800".encode("utf-8", "surrogatepass")
    texts = (b"", b"{", b"NaN", deep.encode(), b'{"about":' * 3000, surrogate, b"9" * 9999)
    path.write_bytes(rng.choice(texts))


def no_file(place: Path, rng: random.Random) -> None:
    """A pipe, a device, a folder or nothing in place of the net or its card."""
    path = net_files.write(place, small())
    path = rng.choice((path, path.with_suffix(".json")))
    damages = (_damage.pipe, _damage.link, _damage.folder, _damage.missing)
    rng.choice(damages)(path, rng)


def spoiled(place: Path, rng: random.Random) -> None:
    path = net_files.write(place, small())
    path.write_bytes(_damage.mutated(rng, path.read_bytes(), 900))


def long_header(place: Path, rng: random.Random) -> None:
    path = net_files.write(place, small())
    size = rng.choice((1 << 62, 90 << 20, 2 << 20))
    with path.open("r+b") as file:
        file.write(size.to_bytes(8, "little"))
        file.truncate(100 << 20)


def all_zero(place: Path, rng: random.Random) -> None:
    """Masks without a bit set: 11 or 37 MB took 6.4 GB or all there was."""
    wide = card(Layer(rng.choice((2_000, 9_000, 60_000))), Layer(rng.choice((1_500, 5_000))))
    path = place / "made.safetensors"
    path.with_suffix(".json").write_bytes(msgspec.json.encode(wide))
    tensors: dict[str, Any] = {}
    for name, shape in wide.shapes.items():
        if len(shape) == 2:
            tensors[name + nets.MASK] = np.zeros((-(-shape[0] // 16), -(-shape[1] // 8)), np.uint8)
            tensors[name + nets.KEPT] = np.zeros(0, np.float16)
        else:
            tensors[name] = np.zeros(shape, np.float16)
    save_file(tensors, path)


# -- graphs -------------------------------------------------------------------------------------------

INPUTS = card().inputs


def graph(place: Path, nodes: list[bytes], *constants: bytes) -> None:
    """`nodes` from x [n, inputs] to z, onto which what a product gives is added."""
    weight = tensor("w", np.zeros((INPUTS, SENONES), np.float32))
    nodes = [*nodes, node("ReduceMax", ["z"], ["m"], keepdims=0), node("MatMul", ["x", "w"], ["p"])]
    nodes.append(node("Add", ["p", "m"], ["y"]))
    ins, outs = [ends("x", ["n", INPUTS])], [ends("y", ["n", SENONES])]
    onnx_files.write(place, net_files.net(card()), model(nodes, [weight, *constants], ins, outs))


def graph_sound(place: Path, rng: random.Random) -> None:
    onnx_files.write(place, small())


def graph_spoiled(place: Path, rng: random.Random) -> None:
    path = onnx_files.write(place, small())
    path.write_bytes(_damage.mutated(rng, path.read_bytes(), 60))


def doubling(place: Path, rng: random.Random) -> None:
    operator = rng.choice(("Concat", "Gather"))
    rows = ["x", *(f"d{i}" for i in range(34)), "z"]
    if operator == "Concat":
        axis = rng.randrange(2)
        graph(place, [node("Concat", [a, a], [b], axis=axis) for a, b in pairwise(rows)])
        return
    graph(place, [node("Gather", ["w", "i"], ["z"])], tensor("i", np.zeros(3_000_000, np.int64)))


def folding(place: Path, rng: random.Random) -> None:
    size = rng.choice((20_000, 40_000))
    constants = [
        tensor("c", np.ones((size, 1), np.float32)),
        tensor("r", np.ones((1, size), np.float32)),
    ]
    graph(place, [node(rng.choice(("MatMul", "Add", "Mul")), ["c", "r"], ["z"])], *constants)


def broadcasting(place: Path, rng: random.Random) -> None:
    many = tensor("many", np.ones((rng.choice((50_000, 500_000)), 1), np.float32))
    axes = tensor("axes", np.array([1], np.int64))
    nodes = [node("Unsqueeze", ["x", "axes"], ["u"]), node("Add", ["u", "many"], ["z"])]
    graph(place, nodes, many, axes)


def repeating(place: Path, rng: random.Random) -> None:
    size = rng.choice((300, 1500))
    constants = [
        tensor("s", np.zeros((size, size), np.float32)),
        tensor("f", np.zeros((INPUTS, size), np.float32)),
    ]
    rows = ["a", *(f"p{i}" for i in range(3000)), "z"]
    nodes = [node("MatMul", ["x", "f"], ["a"])]
    graph(place, nodes + [node("MatMul", [a, "s"], [b]) for a, b in pairwise(rows)], *constants)


def by_values(place: Path, rng: random.Random) -> None:
    """Sizes that depend on the speech: nothing for silence."""
    operator = rng.choice(
        [
            "NonZero",
            "Unique",
            "Tile",
            "Expand",
            "Range",
            "Pad",
            "ConstantOfShape",
            "Slice",
            "Reshape",
        ]
    )
    inputs = {"Slice": ["w", "k", "k"], "Reshape": ["w", "k"], "NonZero": ["x"], "Unique": ["x"]}
    cast = node("Cast", ["x"], ["k"], to=7)
    graph(place, [cast, node(operator, inputs.get(operator, ["k"]), ["z"])])


def elsewhere(place: Path, rng: random.Random) -> None:
    """Weights in another file."""
    where = rng.choice(("/etc/passwd", "../secret", "/dev/zero", "pipe"))
    more = part(13, part(1, "location") + part(2, where)) + integer(14, rng.randrange(2))
    graph(place, [node("Identity", ["x"], ["z"])], tensor("e", np.zeros(3, np.float32), more))


def subgraph(place: Path, rng: random.Random) -> None:
    name = rng.choice(("Loop", "If", "Scan"))
    graph(place, [node(name, ["x"], ["z"], part(5, part(1, "body") + part(6, part(2, "inner"))))])


def shapes(place: Path, rng: random.Random) -> None:
    shape = rng.choice(([10**9, 10**9], [-1, 5], [1] * 99, [0], [2**62, 4]))
    graph(place, [node("Identity", ["x"], ["z"])], tensor("e", np.zeros(3, np.float32), shape=shape))


SAFETENSORS: tuple[Make, ...] = (*(sound, card_value, card_text, no_file, spoiled, long_header, all_zero),)
GRAPHS: tuple[Make, ...] = (
    *(graph_sound, graph_spoiled, doubling, folding, broadcasting, repeating, by_values),
    *(elsewhere, subgraph, shapes),
)


def made(place: Path, make: Make, seed: int) -> None:
    make(place, random.Random(seed))


def attacks(rng: random.Random, count: int) -> Iterator[Attack]:
    """Every net and graph once, then at random."""
    makes = (*SAFETENSORS, *GRAPHS)
    for number in range(count):
        make = makes[number] if number < len(makes) else rng.choice(makes)
        seed = rng.randrange(1 << 30)
        name = "made.onnx" if make in GRAPHS else "made.safetensors"
        write = functools.partial(made, make=make, seed=seed)
        yield Attack(f"net, {make.__name__} ({seed})", write, (run(name),))
