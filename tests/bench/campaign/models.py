"""Models, nets, graphs and caches of strangers. Made on purpose is what takes all memory or time, or is forged: with
checksums that are right.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import io
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from unittest import mock

import msgspec
import numpy as np
import soundfile
from safetensors.numpy import save_file

from pipelines.config import Graph as GraphConfig
from pipelines.models import nets, sphinx
from pipelines.models.nets import Layer
from pipelines.search.graph import cache as store
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.openfst import from_arcs
from pipelines.search.graph.recipe import recipe_of
from pipelines.search.graph.topology import Topology
from pipelines.search.graph.wfst import ARRAYS, Graph, Senones, from_topology, save
from profiler.files.paths import CACHE_VARIABLE
from tests.bench.campaign import mutate
from tests.bench.campaign.attack import SPEECH, Attack, Kind
from tests.pipelines import net_files, onnx_files
from tests.pipelines import sphinx_writer as writer
from tests.pipelines.onnx_files import ends, integer, model, node, part, tensor

CACHE: Final = "cache"
"""Folder of an attack that is the program's cache."""

# -- models of CMUSphinx -------------------------------------------------------------------------

SPHINX: Final = ("feat.params", "mdef", "means", "variances", "transition_matrices", "sendump", "noisedict")


def run(form: str, own_graph: bool = False) -> tuple[str, ...]:
    """A run with the folder `model` as its acoustic model, as it is or derived from, over words of its phones."""
    words = () if own_graph else ("--set", "graph.dictionary=words.dict", "--set", "graph.grammar=words.gram")
    chosen = ("--set", f"model={form}", "--set", "model_directory=model", "--audio", SPEECH)
    return "run", "--preset", "gmm", *chosen, *words, "--no-profile", "--json"


def _sphinx(folder: Path, file: str) -> None:
    made = writer.write_model(folder / "model", codebooks=1 + 3 * (len(file) % 2))
    if file.endswith("mdef"):
        (made / "mdef").write_bytes(writer.text_mdef())
    (made / "noisedict").write_text("<s> SIL\n</s> SIL\n<sil> SIL\n[NOISE] +NSN+\n")
    (folder / "words.dict").write_text("ab AA B\nba B AA\n")
    (folder / "words.gram").write_text("#JSGF V1.0;\ngrammar words;\npublic <words> = (ab | ba)+;\n")


MODELS: Final = Kind(
    files=lambda: [f"model/{name}" for name in SPHINX],
    make=_sphinx,
    commands=lambda file: (run("ptm"), run("continuous")),
)

# -- caches --------------------------------------------------------------------------------------

CACHED: Final = (
    *("run", "--preset", "gmm-continuous", "--audio", SPEECH, "--no-profile", "--json"),
    *("--set", "gmm.components=8", "--set", "graph.vocabulary=60", "--set", "graph.bigrams=200"),
    *("--set", "gmm.selection.enabled=true", "--set", "gmm.selection.method=vq"),
    *("--set", "gmm.selection.codewords=32"),
)
"""Uses a graph, a derived model and tables of a selection."""
VERBS: Final = (CACHED, ("doctor", "--json"), ("doctor", "--empty-cache", "--json"))


def words(cache: Path) -> list[str]:
    """The hypotheses of the run with this cache, in this process."""
    from app.cli.main import main

    out = io.StringIO()
    with (
        mock.patch.dict(os.environ, {CACHE_VARIABLE: str(cache)}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        status = main(list(CACHED))
    assert status == 0, out.getvalue()
    return [one["hypothesis"] for one in json.loads(out.getvalue())["utterances"]]


@functools.cache
def clean() -> tuple[Path, list[str]]:
    """A whole cache, made once by a run, and the words of that run; nobody may change it."""
    folder = Path(tempfile.mkdtemp(prefix="asrscope-clean-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder, words(folder)


def cached() -> list[str]:
    """All files of a cache, in order, below the folder of an attack."""
    return sorted(f"{CACHE}/{path.relative_to(clean()[0])}" for path in clean()[0].rglob("*.kept") if path.is_file())


def copied(folder: Path, file: str) -> None:
    """A sound cache in `folder`."""
    shutil.copytree(clean()[0], folder / CACHE, symlinks=True)


def swapped(path: Path, rng: random.Random) -> None:
    """Another file of the cache in place of one."""
    others = [each for each in path.parents[1].rglob("*.kept") if each != path] or [path]
    shutil.copyfile(rng.choice(others), path.with_name("other"))
    path.with_name("other").replace(path)


CACHE_DAMAGES: Final = (*mutate.DAMAGES, swapped)


def _no_cache(how: str, folder: Path) -> None:
    """A place where no cache can be."""
    place = folder / CACHE
    if how == "file":
        place.write_text("")
    elif how == "dangling":
        place.symlink_to(folder / "nowhere" / "at all")
    else:
        place.mkdir(mode=0o500 if how == "read-only" else 0o700)
        for kind in ("graphs", "models", "selection", "peaks") if how == "kinds" else ():
            (place / kind).write_text("")


def _no_caches(rng: random.Random) -> Iterator[Attack]:
    for how in ("file", "dangling", "read-only", "kinds"):
        make = functools.partial(_no_cache, how)
        # Without a cache each run compiles its kernels and clusters the model: 17 s on two idle cores.
        yield Attack(
            f"caches: none, {how}", make, VERBS, may_fail=True, patience=3.0, environment={CACHE_VARIABLE: CACHE}
        )


CACHES: Final = Kind(
    *(_no_caches, cached, copied, lambda file: VERBS, CACHE_DAMAGES),
    more={"environment": {CACHE_VARIABLE: CACHE}, "may_fail": True},
)

# -- graphs --------------------------------------------------------------------------------------

GRAMMAR: Final = "digits"
DIGITS: Final = ("run", "--no-profile", "--preset", "gmm", "--set", f"graph.grammar={GRAMMAR}", "--audio", "a.wav")
LARGE: Final = (-1, 0, 1, 2**31 - 1, -(2**31), 2**30, 0x7F800000, 0x7FC00000, 0x7F7FFFFF, -8388609)
"""Indices of nothing, and floats that are infinite, no number, or the largest."""
Spoil = Callable[[random.Random], Graph]


@functools.cache
def _sound_graph() -> tuple[str, Graph]:
    """The graph of a small grammar and where it lies in a cache."""
    acoustic = sphinx.load(sphinx.default_directory())
    with mock.patch.dict(os.environ, {CACHE_VARIABLE: CACHE}):
        path = store.path_of(recipe_of(GraphConfig(grammar=GRAMMAR), acoustic))
    return os.path.relpath(path), graphs.load_or_build(GraphConfig(grammar=GRAMMAR), acoustic)


def _digits(folder: Path, file: str, graph: Graph | None = None) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    save(graph or _sound_graph()[1], folder / file)
    noise = np.random.default_rng(3).normal(scale=0.05, size=8_000).astype(np.float32)
    soundfile.write(folder / "a.wav", noise, 16_000)


def _forged(**fields: Any) -> Graph:
    """The graph with other fields, unchecked, as a stranger who knows the format would save it."""
    made = object.__new__(Graph)
    made.__dict__.update(vars(_sound_graph()[1]) | fields)
    return made


def _numbers(rng: random.Random) -> Graph:
    """Some numbers of one array."""
    name = rng.choice([name for name, _ in ARRAYS])
    array = getattr(_sound_graph()[1], name).copy()
    words = array.view(np.int32 if array.itemsize % 4 == 0 else np.uint8).reshape(-1)
    for _ in range(rng.choice((1, 1, 4, 100))):
        at = rng.randrange(len(words))
        near = int(words[at]) + rng.choice((-1, 1))
        value = rng.choice((*LARGE, near, rng.randrange(-(2**31), 2**31)))
        words[at] = np.array(value, np.int64).astype(words.dtype)
    return _forged(**{name: array})


def _shorter(name: str) -> Graph:
    return _forged(**{name: getattr(_sound_graph()[1], name)[:-1].copy()})


def _small(*arcs: tuple[int, int, int, float, int], states: int = 2, senones: int = 0) -> Graph:
    """A sound graph of (source, senone + 1, word + 1, weight, target), every state final."""
    known = _sound_graph()[1]
    columns = [np.array(column) for column in zip(*arcs, strict=True)] or [np.empty(0, int)] * 5
    nothing = np.zeros(states, np.int32), np.zeros(states, np.float32)
    n = senones or known.n_senones
    phones = np.resize(known.senone_phone, n), np.resize(known.senone_state, n)
    fst = from_arcs(states, 0, np.zeros(states, np.float32), *columns)
    return from_topology(Topology(fst, *nothing), Senones(*phones, known.filler), ("one",), [[]])


LADDER: Final = tuple((i, 0, 0, 0.01 * j, i + 1) for i in range(199) for j in range(2))
"""Epsilon arcs two by two up 200 states: more paths than there are atoms."""
FORGED: Final[dict[str, Spoil]] = {
    "a sound one": lambda rng: _sound_graph()[1],
    **{f"{name} shorter": lambda rng, name=name: _shorter(name) for name, _ in ARRAYS},
    "states without end": lambda rng: _forged(n_epsilon_states=2**62),
    "negative states": lambda rng: _forged(n_epsilon_states=-1),
    "start outside": lambda rng: _forged(start=2**31),
    "senones without end": lambda rng: _forged(n_senones=2**62),
    "no words": lambda rng: _forged(words=()),
    "nothing to do": lambda rng: _small(states=1),
    "cheaper each time": lambda rng: _small((0, 0, 0, -1.0, 1), (1, 0, 0, 0.5, 0), (1, 1, 1, 0.0, 0)),
    "a word each time": lambda rng: _small((0, 0, 1, -9.0, 1), (1, 0, 0, 0.5, 0), (1, 1, 1, 0.0, 0)),
    "circles that cost nothing": lambda rng: _small((0, 0, 0, 0.0, 1), (1, 0, 0, 0.0, 0), (1, 1, 1, 0.0, 0)),
    "as cheap as can be": lambda rng: _small((0, 1, 1, -1e30, 0), (0, 0, 0, -1e30, 1)),
    "of another model": lambda rng: _small((0, 1, 1, 0.0, 0), senones=3),
    "a ladder of epsilons": lambda rng: _small(*LADDER, (199, 1, 1, 0.0, 0), states=200),
}


def _graphs(rng: random.Random) -> Iterator[Attack]:
    forged = iter(FORGED.items())
    for number in range(1_000_000):
        name, made = next(forged, (f"numbers {number}", _numbers))
        seed = rng.getrandbits(30)

        def make(folder: Path, made: Spoil = made, seed: int = seed) -> None:
            _digits(folder, _sound_graph()[0], made(random.Random(seed)))

        lattice = ("--set", "search.lattice=true") if seed % 2 else ()
        yield Attack(f"graphs: {name}", make, ((*DIGITS, *lattice),), environment={CACHE_VARIABLE: CACHE})


GRAPHS: Final = Kind(
    _graphs, lambda: [_sound_graph()[0]], _digits, lambda file: (DIGITS,), more={"environment": {CACHE_VARIABLE: CACHE}}
)

# -- nets ----------------------------------------------------------------------------------------

SENONES: Final = 5126
MADE: Final = ("made.json", "made.safetensors", "made.onnx")


def _run_net(file: str) -> tuple[tuple[str, ...], ...]:
    name = file if file.endswith(".onnx") else "made.safetensors"
    small = ("--set", "graph.vocabulary=60", "--set", "graph.bigrams=200", "--no-profile", "--json")
    plain = ("--set", "dnn.senones=all") if name.endswith(".onnx") else ()
    return (("run", "--preset", "dnn", "--set", f"dnn.net={name}", "--audio", SPEECH, *plain, *small),)


def _net(folder: Path, file: str) -> None:
    made = net_files.net(net_files.card(Layer(8), senones=SENONES))
    (onnx_files.write if file.endswith(".onnx") else net_files.write)(folder, made)


def _long_header(size: int, folder: Path) -> None:
    _net(folder, "made.safetensors")
    with (folder / "made.safetensors").open("r+b") as file:
        file.write(size.to_bytes(8, "little"))
        file.truncate(100 << 20)


def _all_zero(wide: int, folder: Path) -> None:
    """Masks without a bit set: 11 or 37 MB took 6.4 GB or all there was."""
    made = net_files.card(Layer(wide), Layer(5_000), senones=SENONES)
    (folder / "made.json").write_bytes(msgspec.json.encode(made))
    tensors: dict[str, Any] = {}
    for name, shape in made.shapes.items():
        if len(shape) == 2:
            tensors[name + nets.MASK] = np.zeros((-(-shape[0] // 16), -(-shape[1] // 8)), np.uint8)
            tensors[name + nets.KEPT] = np.zeros(0, np.float16)
        else:
            tensors[name] = np.zeros(shape, np.float16)
    save_file(tensors, folder / "made.safetensors")


def _onnx(nodes: list[bytes], constants: list[bytes], folder: Path) -> None:
    """`nodes` from x [n, inputs] to z, onto which what a product gives is added."""
    card = net_files.card(senones=SENONES)
    weight = tensor("w", np.zeros((card.inputs, SENONES), np.float32))
    nodes = [*nodes, node("ReduceMax", ["z"], ["m"], keepdims=0), node("MatMul", ["x", "w"], ["p"])]
    nodes.append(node("Add", ["p", "m"], ["y"]))
    ins, outs = [ends("x", ["n", card.inputs])], [ends("y", ["n", SENONES])]
    onnx_files.write(folder, net_files.net(card), model(nodes, [weight, *constants], ins, outs))


def _graphs_of_nets() -> Iterator[tuple[str, list[bytes], list[bytes]]]:
    inputs = net_files.card(senones=SENONES).inputs
    rows = ["x", *(f"d{i}" for i in range(34)), "z"]
    for axis in (0, 1):
        yield f"doubling {axis}", [node("Concat", [a, a], [b], axis=axis) for a, b in pairwise(rows)], []
    yield "gathering", [node("Gather", ["w", "i"], ["z"])], [tensor("i", np.zeros(3_000_000, np.int64))]
    for name in ("MatMul", "Add", "Mul"):
        sides = [tensor(n, np.ones(shape, np.float32)) for n, shape in (("c", (40_000, 1)), ("r", (1, 40_000)))]
        yield f"folding {name}", [node(name, ["c", "r"], ["z"])], sides
    many = [tensor("many", np.ones((500_000, 1), np.float32)), tensor("axes", np.array([1], np.int64))]
    yield "broadcasting", [node("Unsqueeze", ["x", "axes"], ["u"]), node("Add", ["u", "many"], ["z"])], many
    rows = ["a", *(f"p{i}" for i in range(3000)), "z"]
    sizes = [tensor("s", np.zeros((1500, 1500), np.float32)), tensor("f", np.zeros((inputs, 1500), np.float32))]
    products = [node("MatMul", [a, "s"], [b]) for a, b in pairwise(rows)]
    yield "repeating", [node("MatMul", ["x", "f"], ["a"]), *products], sizes
    by_values = {"Slice": ["w", "k", "k"], "Reshape": ["w", "k"], "NonZero": ["x"], "Unique": ["x"]}
    # Sizes that depend on the speech: nothing for silence.
    for name in (*by_values, "Tile", "Expand", "Range", "Pad", "ConstantOfShape"):
        yield name, [node("Cast", ["x"], ["k"], to=7), node(name, by_values.get(name, ["k"]), ["z"])], []
    same = [node("Identity", ["x"], ["z"])]
    for where in ("/etc/passwd", "../secret", "/dev/zero", "pipe"):  # weights in another file
        more = part(13, part(1, "location") + part(2, where)) + integer(14, 1)
        yield where, same, [tensor("e", np.zeros(3, np.float32), more)]
    for name in ("Loop", "If", "Scan"):
        yield name, [node(name, ["x"], ["z"], part(5, part(1, "body") + part(6, part(2, "inner"))))], []
    for shape in ([10**9, 10**9], [-1, 5], [1] * 99, [0], [2**62, 4]):
        yield f"{shape[:2]}", same, [tensor("e", np.zeros(3, np.float32), shape=shape)]


def _nets(rng: random.Random) -> Iterator[Attack]:
    makes: list[tuple[str, Callable[[Path], None]]] = [
        *((f"a header of {size}", functools.partial(_long_header, size)) for size in (1 << 62, 90 << 20, 2 << 20)),
        *((f"masks of {wide}", functools.partial(_all_zero, wide)) for wide in (2_000, 9_000, 60_000)),
    ]
    yield from (Attack(f"nets: {name}", make, _run_net("made.safetensors")) for name, make in makes)
    for name, nodes, constants in _graphs_of_nets():
        yield Attack(f"nets: {name}", functools.partial(_onnx, nodes, constants), _run_net("made.onnx"))


NETS: Final = Kind(_nets, lambda: MADE, _net, _run_net)
