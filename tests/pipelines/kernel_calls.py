"""Every compiled kernel of scoring called on arrays between walls: as small models call it, and with arrays cut short.

A kernel need not be entered here. Models and nets of odd sizes score all kinds of blocks while every call from Python
into a kernel is written down; each is then done again on copies beside pages that nobody may touch. What no model
calls is missing in the list that this prints, and `test_kernel_fences` wants every kernel of the room in it.

    python kernel_calls.py replay cut FILE | indices FILE | plant     (a process of its own: a mistake kills it)

The first writes some calls of the kernels that go by indices alone to FILE (.npz), and the second does them on plain
arrays, for numba's own checks. One line of JSON goes to stdout: way → kernel → what went wrong.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import itertools
import json
import os
import pkgutil
import sys
import tempfile
import traceback
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import net_files
import numpy as np
import sphinx_writer as writer
from numba import njit
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from selection_reference import METHODS, configured, family_of

import pipelines.scoring
from pipelines.config import Config, assign
from pipelines.models import sphinx
from pipelines.models.nets import Layer
from pipelines.scoring import roofs, senones
from pipelines.scoring.clustering.codewords import codewords_of
from pipelines.scoring.dnn import DenseNet, QuantisedNet, integers, products
from pipelines.scoring.meter import Meter
from pipelines.scoring.scorer import EXACT, _Source
from pipelines.scoring.simd.maxima import largest
from pipelines.scoring.simd.vector import LANES, address
from pipelines.scoring.strategy import never, quietly
from profiler.arrays import Array
from tests.fences import Fenced, Side

ROOM = pipelines.scoring.__name__

FRAMES = (0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64)
TIED = ((1, 1, 1), (1, 16, 16), (2, 15, 17), (3, 17, 33), (4, 40, 150))
"""Codebooks, densities and senones; 8, 2 and 1 panels of sixteen of them are done by tiles of their own."""
CONTINUOUS = ((1, 1, 1), (15, 3, 1), (17, 3, 17), (33, 1, 16), (40, 3, 5))
"""Senones, streams and components."""
LAYERS = ((1, 1), (15, 40), (16, 17), (64, 64), (65, 33), (129, 65))
"""Outputs and inputs of a product."""
BY_ADDRESS = ("dnn.products.blocks._multiply_few", "dnn.products.simd._multiply")
"""They take x by its address and strides; `Product.multiply` compares these, and is called between walls itself."""
MAX_CALLS = 150
SOME = 12
"""Calls of a kernel that are kept for numba's own checks."""


def loaded() -> list[Any]:
    """All modules of the room."""
    names = [m.name for m in pkgutil.walk_packages(pipelines.scoring.__path__, f"{ROOM}.")]
    return [importlib.import_module(name) for name in names if "device" not in name]


def named(kind: type) -> dict[str, Any]:
    """Whatever of `kind` the modules of the room define: name within the room → object."""
    found: dict[int, tuple[str, Any]] = {}
    for module in loaded():
        for name, value in vars(module).items():
            home = getattr(getattr(value, "py_func", None), "__module__", module.__name__)
            if isinstance(value, kind) and home == module.__name__:
                found.setdefault(id(value), (f"{module.__name__[len(ROOM) + 1 :]}.{name}", value))
    return dict(found.values())


def kernels() -> dict[str, Dispatcher]:
    """Compiled functions."""
    return named(Dispatcher)


def used(kernel: Dispatcher) -> Iterator[Any]:
    """Kernels and LLVM functions that `kernel` calls, and those that they call."""
    for name in kernel.py_func.__code__.co_names:
        value = kernel.py_func.__globals__.get(name)
        if isinstance(value, _Intrinsic | Dispatcher):
            yield value
        if isinstance(value, Dispatcher):
            yield from used(value)


def inner() -> set[str]:
    """Kernels that other kernels call: they run where those do."""
    called = {id(value) for kernel in kernels().values() for value in used(kernel)}
    return {name for name, kernel in kernels().items() if id(kernel) in called}


def steps() -> dict[str, Any]:
    """LLVM functions: name → function."""
    return named(_Intrinsic)


Call = tuple[Any, ...]
Calls = dict[str, dict[Any, Call]]


@contextmanager
def written_down() -> Iterator[Calls]:
    """While it lasts, what Python calls kernels with is copied: name → (what tells calls apart → arguments)."""
    calls: Calls = {}
    changed: list[tuple[Any, str, Any]] = []
    within = inner()
    for name, kernel in kernels().items():
        if name in within or name in BY_ADDRESS:
            continue
        recorder = _recorder(kernel, calls.setdefault(name, {}))
        for module in loaded():
            for key, value in list(vars(module).items()):
                if value is kernel:
                    changed.append((module, key, value))
                    setattr(module, key, recorder)
    try:
        yield calls
    finally:
        for module, key, value in changed:
            setattr(module, key, value)


def leaves(arguments: Call) -> list[Any]:
    """The arguments, those that are tuples one by one."""
    return [leaf for a in arguments for leaf in (leaves(a) if isinstance(a, tuple) else [a])]


def rebuilt(arguments: Call, of: Iterator[Any]) -> Call:
    """As `arguments`, tuples in tuples, with these leaves."""
    return tuple(_like(a, rebuilt(a, of)) if isinstance(a, tuple) else next(of) for a in arguments)


def _like(kind: Call, parts: Call) -> Call:
    return type(kind)(*parts) if hasattr(kind, "_fields") else parts


def _each(arguments: Call, change: Callable[[Array], Any]) -> Call:
    """The call with each of its arrays changed."""
    changed = (change(a) if isinstance(a, np.ndarray) else a for a in leaves(arguments))
    return rebuilt(arguments, changed)


def _recorder(kernel: Dispatcher, calls: dict[Any, Call]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        told = tuple(
            (a.shape, a.strides, a.dtype.char) if isinstance(a, np.ndarray) else (type(a), a)
            for a in leaves(arguments)
        )
        if told not in calls and len(calls) < MAX_CALLS:
            calls[told] = _each(arguments, _copy)
        return kernel(*arguments)

    return call


def _copy(array: Array) -> Array:
    """With the same strides."""
    if array.flags.c_contiguous or not array.size:
        return array.copy()
    reach = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    copied: Array = np.ndarray(
        array.shape, array.dtype, bytearray(reach + array.itemsize), 0, array.strides
    )
    copied[...] = array
    return copied


# ---- what the room does


def play() -> None:
    """All that scores, on models and blocks of odd sizes."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        tied = sphinx.load(writer.write_model(base / "tied", 4, 20))
        own = sphinx.load(writer.write_continuous(base / "own", 3, 4))
    for sizes in TIED:
        _play_model(_tied(tied, *sizes))
    for sizes in CONTINUOUS:
        _play_model(_continuous(own, *sizes))
    _play_nets()
    _play_products()
    codewords_of(tied, 5, quietly, never).nearest(_features(7), Meter())
    roofs._multiplied()(1)
    for roof in (roofs._exp, roofs._log):
        roof(np.full(48, 0.5, np.float32), np.zeros(48, np.float32), 1)


def _features(n: int) -> Array:
    return np.random.default_rng(n).normal(0, 3, (n, 39)).astype(np.float32)


def _tied(model: Any, books: int, densities: int, count: int) -> Any:
    rng = np.random.default_rng(count)
    shape = (books, 3, densities, 13)
    weights = rng.uniform(0.1, 1, (3, densities, count)).astype(np.float32)
    owner = rng.integers(max(1, books - 1), size=count)  # a codebook of many may be nobody's
    return dataclasses.replace(
        model,
        mdef=SimpleNamespace(n_senones=count),  # type: ignore[arg-type]
        means=rng.normal(0, 3, shape).astype(np.float32),
        variances=rng.uniform(0.5, 4, shape).astype(np.float32),
        weights=weights / weights.sum(1, keepdims=True),
        senone_codebook=owner.astype(np.int32),
    )


def _continuous(model: Any, count: int, streams: int, components: int) -> Any:
    rng = np.random.default_rng(count)
    shape = (count, streams, components, 39 // streams)
    weights = rng.uniform(0.1, 1, (streams, components, count)).astype(np.float32)
    return dataclasses.replace(
        model,
        mdef=SimpleNamespace(n_senones=count),  # type: ignore[arg-type]
        means=rng.normal(0, 3, shape).astype(np.float32),
        variances=rng.uniform(0.5, 4, shape).astype(np.float32),
        weights=weights,
        senone_codebook=np.arange(count, dtype=np.int32),
    )


def _play_model(model: Any) -> None:
    for threads in (1, 3):
        family = family_of(model, threads)
        n = family.n_senones
        for method, changes in _ways(family.kind):
            strategy, _ = configured(family, method, **changes)
            for frames in FRAMES if threads == 1 else (1, 17):
                scores = np.zeros((frames, n), np.float32)
                strategy.score(_features(frames), scores, Meter())
        strategy, _ = configured(family, EXACT)
        vq, _ = configured(family, "vq")
        for chosen, frames in itertools.product((strategy, vq), (1, 3, 17)):
            _play_rules(_Source(family, chosen), n, frames)


def _ways(kind: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for method in ("none", *METHODS):
        yield method, {}
    for component in ("int8", "max"):
        yield "none", {"gmm__component": component}
        if kind == "Continuous":
            yield "vq", {"gmm__component": component}
    for top_n in (1, 7, 16, 64):
        yield "top-n", {"gmm__selection__top_n": top_n}
        yield (
            "top-n",
            {"gmm__selection__top_n": top_n, "gmm__component": "partial-distance"},
        )


def _play_rules(source: Any, n: int, frames: int) -> None:
    own = np.arange(0, n, 3)
    parents = senones.Parents(own, (np.arange(n) // 3).astype(np.int32))
    features, scores = _features(frames), np.zeros((frames, n), np.float32)
    for name, cap in itertools.product(senones.rules(), (0, 4)):
        rule = senones.create(name, n, parents)
        rule.configure(assign(Config(), {"gmm.ci_cap": cap}).gmm, source)
        rule.score(features, scores, Meter())
        if rule.lazy:
            rule.begin(features, Meter(), ahead=True)
            for t in range(frames):
                active = np.random.default_rng(t).permutation(n)[: max(1, n - 2 * t)]
                rule.frame(t, active, scores, Meter())


def _play_nets() -> None:
    for count, layers in ((1, ()), (17, (Layer(16),)), (65, (Layer(33), Layer(15, relu=False)))):
        made = net_files.net(net_files.card(*layers, senones=count, left=0, right=1, heads=2))
        for kind, frames in itertools.product((DenseNet, QuantisedNet), FRAMES[1:]):
            net = kind(made, 1, 64)
            spliced = net.splice(_features(frames + 1), Meter())
            scores = np.zeros((frames, count), np.float32)
            net.score(spliced, scores, Meter())
            net.begin_some(spliced, Meter())
            for some in {0, 1, min(5, count), count}:
                net.score_some(0, frames, np.arange(some), scores, Meter())
            net.score_by_heads(np.zeros(frames, np.int64), np.arange(frames) % 2, scores, Meter())


def _weights(outputs: int, inputs: int) -> Array:
    rng = np.random.default_rng(outputs)
    weight = rng.standard_normal((outputs, inputs)).astype(np.float32)
    weight[rng.random(weight.shape) < 0.5] = 0
    return weight


def _blocks(inputs: int, outputs: int) -> Iterator[tuple[Array, Array]]:
    """(x, room for the product), in the orders that a product may be given them."""
    for n in FRAMES[1:]:
        x = np.random.default_rng(n).standard_normal((inputs, n)).astype(np.float32)
        yield x, np.zeros((outputs, n), np.float32)
        yield np.asfortranarray(x), np.zeros((outputs, n), np.float32)


def _play_products() -> None:
    for outputs, inputs in LAYERS:
        for name, threads in itertools.product(products.names(), (1, 3)):
            product = products.create(name, _weights(outputs, inputs), threads, 64)
            for x, out in _blocks(inputs, outputs):
                product.multiply(x, out)
                if product.into_rows:
                    product.multiply(x, np.zeros(out.shape[::-1], np.float32).T)
        for threads in (1, 3):
            panels = integers.Panels(_weights(outputs, inputs).astype(np.int8), threads, 64)
            for n in FRAMES[1:]:
                panels.sums(np.ones((n, integers.filled(inputs)), np.int8))


# ---- between walls


def _walled(arguments: Call, side: Side) -> tuple[Call, list[Fenced]]:
    fences: list[Fenced] = []

    def walled(array: Array) -> Array:
        fences.append(Fenced(array, side, align=array.itemsize))
        return fences[-1].array

    return _each(arguments, walled), fences


def replay(name: str, kernel: Any, arguments: Call) -> None:
    """Do a call on plain copies and twice between walls: the same results, and nothing else written."""
    plain = _each(arguments, _copy)
    kernel(*plain)
    for side in ("behind", "before"):
        walled, fences = _walled(arguments, side)  # type: ignore[arg-type]
        kernel(*walled)
        if not all(fence.intact() for fence in fences):
            raise AssertionError(f"{name} writes {side} its arrays")
        for a, b in zip(leaves(plain), leaves(walled), strict=True):
            if isinstance(a, np.ndarray):
                np.testing.assert_array_equal(a, b, err_msg=f"{name}: other results {side} a wall")


def shortened(arguments: Call) -> Iterator[Call]:
    """The call with each array shorter by one along each axis, and each integer one more or below zero."""
    flat = leaves(arguments)
    for i, argument in enumerate(flat):

        def instead(of: Any, i: int = i) -> Call:
            return rebuilt(arguments, iter([*flat[:i], of, *flat[i + 1 :]]))

        if isinstance(argument, np.ndarray):
            for axis, size in enumerate(argument.shape):
                if size:
                    part = argument[(slice(None),) * axis + (slice(size - 1),)]
                    if argument.flags.c_contiguous:
                        part = np.ascontiguousarray(part)
                    yield instead(part)
        elif isinstance(argument, int) and not isinstance(argument, bool):
            for other in (argument + 1, -1):
                yield instead(other)


def cut(name: str, kernel: Any, arguments: Call) -> None:
    """Do the shortened calls: each is refused, or stays within its arrays."""
    for call in shortened(arguments):
        for side in ("behind", "before"):
            walled, fences = _walled(call, side)  # type: ignore[arg-type]
            with contextlib.suppress(ValueError, ZeroDivisionError):
                kernel(*walled)
            if not all(fence.intact() for fence in fences):
                raise AssertionError(f"{name} writes {side} arrays that are too short for it")


def walled_products() -> None:
    """`Product.multiply` with what a product holds, x and out between walls."""
    for (outputs, inputs), name in itertools.product(LAYERS, products.names()):
        weight = _weights(outputs, inputs)
        for side in ("behind", "before"):
            product = products.create(name, weight, 1, 64)
            held = {k: v for k, v in vars(product).items() if isinstance(v, np.ndarray)}
            fences = {k: Fenced(v, side, align=v.itemsize) for k, v in held.items()}  # type: ignore[arg-type]
            for key, fence in fences.items():
                setattr(product, key, fence.array)
            for x, out in _blocks(inputs, outputs):
                walled, around = _walled((x, out), side)  # type: ignore[arg-type]
                product.multiply(*walled)
                np.testing.assert_allclose(walled[1], weight @ x, rtol=1e-4, atol=1e-4)
                if not all(fence.intact() for fence in (*around, *fences.values())):
                    raise AssertionError(f"{name} writes {side} its arrays")


@njit
def one_row_too_many(x, out):  # type: ignore[no-untyped-def]
    """The planted mistake: the largest of one vector more than there is."""
    out[0] = largest(address(x, np.float32), x.size // LANES + 1)


def main(*words: str) -> None:
    """Do what the module says, one way after the other; of the kernels named alone, if any are."""
    if words[0] == "plant":
        replay("one_row_too_many", one_row_too_many, (np.ones(32, np.float32), np.ones(1, "f")))
        return
    if words[0] == "indices":
        report = {"indices": {name: apart(partial(_plainly, *it)) for name, it in _read(words[1])}}
    else:
        with written_down() as calls:
            play()
        _write(words[-1], calls)
        report = {}
        for way in words[:-1]:
            jobs = {
                name: partial(_done, way, name, kernel, list(calls[name].values()))
                for name, kernel in kernels().items()
                if calls.get(name)
            }
            if way == "replay":
                jobs["products"] = walled_products
            report[way] = {name: apart(job) for name, job in jobs.items()}
    print(json.dumps(report))


def by_index() -> dict[str, Dispatcher]:
    """The kernels that go by indices alone: numba can check those."""
    found, within = steps().values(), inner()
    return {
        name: kernel
        for name, kernel in kernels().items()
        if name not in within and not any(value in found for value in used(kernel))
    }


def _write(file: str, calls: Calls) -> None:
    """Keep a few calls of these, as arrays."""
    np.savez(
        file,
        **{  # type: ignore[arg-type]
            f"{name} {i} {j}": np.asarray(leaf)
            for name in by_index()
            for i, call in enumerate(list(calls[name].values())[-SOME:])
            for j, leaf in enumerate(leaves(call))
        },
    )


def _read(file: str) -> Iterator[tuple[str, tuple[Dispatcher, list[list[Any]]]]]:
    """What `_write` kept, as (name, (kernel, its calls))."""
    known = by_index()
    with np.load(file, allow_pickle=False) as found:
        calls: dict[str, dict[str, list[Any]]] = {}
        for key in found.files:
            name, i, _ = key.split()
            value = found[key]
            argument = value if value.ndim else value.item()
            calls.setdefault(name, {}).setdefault(i, []).append(argument)
    for name, kept in calls.items():
        yield name, (known[name], [_grouped(known[name], one) for one in kept.values()])


def _grouped(kernel: Dispatcher, flat: list[Any]) -> list[Any]:
    """The arguments that `kernel` takes, of their leaves: its annotations say which are tuples."""
    hints = typing.get_type_hints(kernel.py_func)
    of = iter(flat)
    return [_taken(hints.get(name), of) for name in inspect.signature(kernel.py_func).parameters]


def _taken(hint: Any, of: Iterator[Any]) -> Any:
    if hasattr(hint, "_fields"):
        return hint(*(next(of) for _ in hint._fields))
    if typing.get_origin(hint) is tuple:
        return tuple(next(of) for _ in typing.get_args(hint))
    return next(of)


def _plainly(kernel: Dispatcher, calls: list[list[Any]]) -> None:
    for call in calls:
        kernel(*call)


def _done(what: str, name: str, kernel: Any, found: list[Call]) -> None:
    if what == "cut":
        # The largest has the most to lose, one in the middle has other edges.
        found.sort(key=lambda call: sum(np.size(leaf) for leaf in leaves(call)))
        for call in (found[-1], found[len(found) // 2]):
            cut(name, kernel, call)
        return
    for call in found:
        replay(name, kernel, call)


def apart(job: Callable[[], None]) -> str:
    """Do `job` in a process of its own and say how it ended: "" where nothing is wrong."""
    child = os.fork()
    if not child:
        code = 1
        try:
            job()
            code = 0
        finally:
            if code:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "" if not code else f"killed by signal {-code}" if code < 0 else "failed, see above"


if __name__ == "__main__":
    main(*sys.argv[1:])
