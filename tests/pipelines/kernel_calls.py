"""Every compiled kernel of scoring called on arrays between walls: as small models call it, and with arrays cut short.

A kernel need not be entered here. Models and nets of odd sizes score all kinds of blocks while every call from Python
into a kernel is written down; each is then repeated on copies next to pages that nobody may touch. What no model
calls is missing in the list that this prints, and `test_kernel_fences` wants every kernel of the room in it.

    python kernel_calls.py replay cut | indices | plant     (a process of its own: a mistake kills it)

One line of JSON goes to stdout: way → kernel → what went wrong. Among the ways is "made up": what the compiler made of
the kernel and all that it calls is looked at, as other processes load it from the cache. `indices`, with
NUMBA_BOUNDSCHECK=1, plays all models with kernels that check each axis: what stays within an array hits no wall.
"""

import contextlib
import gc
import importlib
import itertools
import json
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from kernel_plays import LAYERS, blocks, play, weights
from numba import njit
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

import pipelines.scoring
from pipelines.scoring.dnn.products import PRODUCTS
from pipelines.scoring.simd.maxima import largest
from pipelines.scoring.simd.vector import LANES, address
from profiler.arrays import Array
from tests.fences import Fenced, Side

ROOM = pipelines.scoring.__name__

BY_ADDRESS = ("dnn.products.sparse._multiply_few", "dnn.products.simd._multiply")
"""They take x by its address and strides; `Product.multiply` compares these, and is called between walls itself."""
MAX_CALLS = 150


def loaded() -> list[Any]:
    """All modules of the room, but the one that only calls a kernel again and again to time it."""
    names = [m.name for m in pkgutil.walk_packages(pipelines.scoring.__path__, f"{ROOM}.")]
    names = [name for name in names if name != f"{ROOM}.peaks"]
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
    code, cells = kernel.py_func.__code__, kernel.py_func.__closure__ or ()
    for value in (*map(kernel.py_func.__globals__.get, code.co_names), *(cell.cell_contents for cell in cells)):
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
    return tuple(rebuilt(a, of) if isinstance(a, tuple) else next(of) for a in arguments)


def each(arguments: Call, change: Callable[[Array], Any]) -> Call:
    """The call with each of its arrays changed."""
    changed = (change(a) if isinstance(a, np.ndarray) else a for a in leaves(arguments))
    return rebuilt(arguments, changed)


def _recorder(kernel: Dispatcher, calls: dict[Any, Call]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        reported = tuple(
            (a.shape, a.strides, a.dtype.char) if isinstance(a, np.ndarray) else (type(a), a) for a in leaves(arguments)
        )
        if reported not in calls and len(calls) < MAX_CALLS:
            calls[reported] = each(arguments, _copy)
        return kernel(*arguments)

    return call


def _copy(array: Array) -> Array:
    """With the same strides."""
    if array.flags.c_contiguous or not array.size:
        return array.copy()
    reach = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    copied: Array = np.ndarray(array.shape, array.dtype, bytearray(reach + array.itemsize), 0, array.strides)
    copied[...] = array
    return copied


# ---- between walls


def _walled(arguments: Call, side: Side) -> tuple[Call, list[Fenced]]:
    fences: list[Fenced] = []

    def walled(array: Array) -> Array:
        fences.append(Fenced(array, side, align=array.itemsize))
        return fences[-1].array

    return each(arguments, walled), fences


def replay(name: str, kernel: Any, arguments: Call) -> None:
    """Do a call on plain copies and twice between walls: the same results, and nothing else written."""
    plain = each(arguments, _copy)
    kernel(*plain)
    for side in ("behind", "before"):
        walled, fences = _walled(arguments, side)  # type: ignore[arg-type]
        kernel(*walled)
        if not all(fence.intact() for fence in fences):
            raise AssertionError(f"{name} writes {side} its arrays")
        for a, b in zip(leaves(plain), leaves(walled), strict=True):
            # Byte for byte the same, as nearly all are, needs no closer look: that takes longer than the call.
            if isinstance(a, np.ndarray) and a.tobytes() != b.tobytes():
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
    for (outputs, inputs), name in itertools.product(LAYERS, PRODUCTS):
        weight = weights(outputs, inputs)
        for side in ("behind", "before"):
            product = PRODUCTS[name](weight, 1, 64)
            held = {k: v for k, v in vars(product).items() if isinstance(v, np.ndarray)}
            fences = {k: Fenced(v, side, align=v.itemsize) for k, v in held.items()}  # type: ignore[arg-type]
            for key, fence in fences.items():
                setattr(product, key, fence.array)
            for x, out in blocks(inputs, outputs):
                walled, around = _walled((x, out), side)  # type: ignore[arg-type]
                product.multiply(*walled)
                np.testing.assert_allclose(walled[1], weight @ x, rtol=1e-4, atol=1e-4)
                if not all(fence.intact() for fence in (*around, *fences.values())):
                    raise AssertionError(f"{name} writes {side} its arrays")


@njit
def one_index_too_many(x):  # type: ignore[no-untyped-def]
    """The planted mistake: beyond an axis, and yet within the array."""
    x[0, x.shape[1]] = 0.0


@njit
def one_row_too_many(x, out):  # type: ignore[no-untyped-def]
    """The planted mistake: the largest of one vector more than there is."""
    out[0] = largest(address(x, np.float32), x.size // LANES + 1)


def stored_poison(code: str) -> list[str]:
    """The stores of LLVM's optimised `code` whose value it takes to be no value at all, so that nothing is written."""
    return re.findall(r"^ *(store [^\n]*\bpoison\b[^\n]*)", code, re.MULTILINE)


def made_up(kernel: Dispatcher) -> str:
    """What `kernel` stores that nothing computes, by the code that other processes load; "" where nothing is wrong."""
    for signature, *_ in kernel._cache._cache_file._load_index():
        kernel.compile(signature)
    found = [] if kernel.overloads else ["not compiled"]
    for signature, made in kernel.overloads.items():
        code = str(made.library._get_module_for_linking())
        assert "define " in code, signature
        found += [f"{signature}: {line}" for line in stored_poison(code)]
    return "; ".join(found)


def main(*words: str) -> None:
    """Do what the module says, one way after the other; of the kernels named alone, if any are."""
    if words[0] == "plant":
        replay("one_row_too_many", one_row_too_many, (np.ones(32, np.float32), np.ones(1, "f")))
        return
    if words[0] == "indices":
        play()
        with contextlib.suppress(IndexError):
            one_index_too_many(np.ones((2, 3)))
            raise AssertionError("no index is checked")
        return
    with written_down() as calls:
        play()
    # Forks share what they do not write; looking for garbage writes to all there is.
    gc.disable()
    gc.freeze()
    within = inner()
    report = {"made up": {name: made_up(kernel) for name, kernel in kernels().items() if name not in within}}
    for way in words:
        jobs = {
            name: partial(_repeat, way, name, kernel, list(calls[name].values()))
            for name, kernel in kernels().items()
            if calls.get(name)
        }
        if way == "replay":
            jobs["products"] = walled_products
        report[way] = {name: apart(job) for name, job in jobs.items()}
    print(json.dumps(report))


def _repeat(what: str, name: str, kernel: Any, calls: list[Call]) -> None:
    if what == "cut":
        # The largest has the most to lose, one in the middle has other edges.
        calls.sort(key=lambda call: sum(np.size(leaf) for leaf in leaves(call)))
        for call in (calls[-1], calls[len(calls) // 2]):
            cut(name, kernel, call)
        return
    for call in calls:
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
