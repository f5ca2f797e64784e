"""Every array of numpy next to a page that nobody may touch, in the whole process.

numpy lets its allocator be exchanged (NEP 49). This one gives each array pages of its own, and a page without any
rights right behind its last byte, or right before its first, so that compiled code that goes one element too far
dies there. Arrays that numba allocates inside a kernel are not numpy's. Linux only.
"""

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

from numba import cfunc, types

from tests.fences import PAGE, Side

LINUX = sys.platform == "linux"
HEADER = 2 * PAGE
"""A page that holds how long the array is, and one that nobody may touch."""

# Places in numpy's table of functions (numpy/_core/code_generators/numpy_api.py).
SET_HANDLER = 304
VERSION = 1

_word = types.intp
_mmap = types.ExternalFunction("mmap", _word(_word, _word, types.int32, types.int32, types.int32, _word))
_munmap = types.ExternalFunction("munmap", types.int32(_word, _word))
_mprotect = types.ExternalFunction("mprotect", types.int32(_word, _word, types.int32))
_memcpy = types.ExternalFunction("memcpy", _word(_word, _word, _word))
READ_WRITE, PRIVATE_ANONYMOUS = 3, 0x22


def _functions(behind: bool) -> tuple[Any, ...]:
    """malloc, calloc, realloc and free as numpy calls them."""
    from numba import carray, njit

    @njit
    def size_at(base):
        return carray(_as_pointer(base), 1)

    @njit
    def make(size):
        room = -(-max(size, 1) // PAGE) * PAGE
        total = HEADER + room + PAGE
        base = _mmap(0, total, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0)
        if base == -1:
            return 0
        size_at(base)[0] = size
        _mprotect(base + PAGE, PAGE, 0)
        _mprotect(base + HEADER + room, PAGE, 0)
        return base + HEADER + (room - size if behind else 0)

    @njit
    def base_of(place):
        # An array begins in the first page of its room, whichever side the wall is on.
        return place // PAGE * PAGE - HEADER

    @njit
    def release(place):
        if place:
            base = base_of(place)
            room = -(-max(size_at(base)[0], 1) // PAGE) * PAGE
            _munmap(base, HEADER + room + PAGE)

    def malloc(_, size):
        return make(size)

    def calloc(_, count, size):
        return make(count * size)

    def realloc(_, place, size):
        made = make(size)
        if made and place:
            _memcpy(made, place, min(size, size_at(base_of(place))[0]))
            release(place)
        return made

    def free(_, place, size):
        release(place)

    return (
        cfunc(_word(_word, _word))(malloc),
        cfunc(_word(_word, _word, _word))(calloc),
        cfunc(_word(_word, _word, _word))(realloc),
        cfunc(types.void(_word, _word, _word))(free),
    )


def _pointer() -> Any:
    from llvmlite import ir
    from numba.extending import intrinsic

    @intrinsic
    def as_pointer(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())

        return types.CPointer(types.int64)(types.intp), generate

    return as_pointer


_as_pointer: Any = _pointer()


class _Allocator(ctypes.Structure):
    _fields_ = (
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class _Handler(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", _Allocator))


def wall(side: Side = "behind") -> None:
    """Put every further array of this process, of all threads, next to a wall."""
    if not LINUX:
        return
    from numpy._core import _multiarray_umath

    functions = _functions(side == "behind")
    addresses = [function.address for function in functions]
    handler = _Handler(b"walls", VERSION, _Allocator(None, *addresses))
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    table = ctypes.cast(api.PyCapsule_GetPointer(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
    install = kind(table[SET_HANDLER])
    capsule = api.PyCapsule_New(ctypes.addressof(handler), b"mem_handler", None)
    _kept.extend((functions, handler, capsule))
    install(capsule)
    # The handler is one of the context, which a thread does not inherit.
    run: Callable[[threading.Thread], None] = threading.Thread.run

    def walled(thread: threading.Thread) -> None:
        install(capsule)
        run(thread)

    threading.Thread.run = walled  # type: ignore[method-assign]


_kept: list[Any] = []
