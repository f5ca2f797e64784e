"""What the system grants this process of threads, memory, stack and disk space: looked at before it is missed.

Libraries end otherwise, each in its own way: OpenBLAS interrupts the process (SIGINT) when it cannot start its threads,
LLVM aborts it, and a stack too small is a segmentation fault.
"""

import contextlib
import errno
import os
import shutil
import threading
from typing import Final

from profiler.errors import BadInput
from profiler.files.paths import CACHE_VARIABLE, cache_path
from profiler.plain import one_line

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

STACK_BYTES: Final = 256 << 10
ADDRESS_SPACE_BYTES: Final = 900_000_000  # Kernels that were not compiled before end LLVM at 600 MB
THREADS: Final = 8  # That write and watch, beside the libraries' one per processor, in either process
NO_THREAD: Final = "can't start new thread"
NO_MEMORY: Final = (
    "not enough memory",
    "can't allocate memory",
    "cannot allocate memory",
    "failed to map segment",
    "std::bad_alloc",
)


def check() -> None:
    """BadInput, one sentence with what is granted and what is needed, where it is too little for any command."""
    for name, needed, what, option in (
        ("RLIMIT_STACK", STACK_BYTES, "stack", "-s"),
        ("RLIMIT_AS", ADDRESS_SPACE_BYTES, "address space", "-v"),
    ):
        granted = _granted(name)
        if granted is not None and granted < needed:
            raise BadInput(
                f"The {what} of this process is limited to {_size(granted)} (ulimit {option}); "
                f"asrscope needs {_size(needed)}."
            )
    needed = threads_needed()
    if (started := startable(needed)) < needed:
        raise BadInput(_threads(f"At most {started} more threads can be started", needed))


def threads_needed() -> int:
    return THREADS + 2 * (os.cpu_count() or 1)


def startable(wanted: int) -> int:
    """Return how many of `wanted` threads can run in addition to those that already do."""
    end = threading.Event()
    threads = [threading.Thread(target=end.wait, daemon=True) for _ in range(wanted)]
    started = 0
    try:
        for thread in threads:
            thread.start()
            started += 1
    except RuntimeError:
        pass
    finally:
        end.set()
        for thread in threads[:started]:
            thread.join()
    return started


def lower(**most: int) -> None:
    """Let this process, a child, take at most so much (`RLIMIT_AS=…`), where the system can tell."""
    for name, value in most.items():
        with contextlib.suppress(AttributeError, ValueError, OSError):
            limit = getattr(resource, name)
            hard = resource.getrlimit(limit)[1]
            least = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (least, hard))


def shortage(problem: BaseException) -> str | None:
    """Return one sentence if the system did not grant what was needed: memory, or a thread or process; else None."""
    met: BaseException | None = problem
    while met is not None:
        text = str(met)
        number = met.errno if isinstance(met, OSError) else None
        if isinstance(met, MemoryError) or number == errno.ENOMEM:
            return _memory(text if isinstance(met, MemoryError) else "")
        if isinstance(met, RuntimeError) and NO_THREAD in text:
            return _threads("No further thread can be started", threads_needed())
        if isinstance(met, RuntimeError | ImportError | OSError) and any(
            message in text.lower() for message in NO_MEMORY
        ):
            return _memory(text)
        met = met.__cause__ or met.__context__
    return None


def sentence(problem: BaseException) -> str:
    """Return the sentence for bad input; an error of the system names its file, or the space left on a full disk."""
    if not isinstance(problem, OSError) or not problem.strerror:
        return str(problem)
    reason = problem.strerror[:1].lower() + problem.strerror[1:]
    if isinstance(problem.filename, str | bytes):
        return f"{one_line(os.fsdecode(problem.filename))}: {reason}."
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        with contextlib.suppress(OSError):
            left = shutil.disk_usage(cache_path()).free
            return (
                f"{problem.strerror} (the cache folder {one_line(str(cache_path()))} has "
                f"{left / 1e6:,.1f} MB left); free some, or set {CACHE_VARIABLE} to a folder on another disk."
            )
    return f"System error: {reason}."


def _memory(message: str) -> str:
    granted = _granted("RLIMIT_AS")
    limit = "" if granted is None else f" (its address space is limited to {_size(granted)})"
    reason = f": {one_line(message.splitlines()[0]).rstrip('.')}" if message else ""
    return f"This process has not enough memory{limit}{reason}."


def _threads(what: str, needed: int) -> str:
    granted = _granted("RLIMIT_NPROC")
    limit = "" if granted is None else f", now {granted:,}"
    return (
        f"{what}, and asrscope needs {needed} beside what runs already: raise the user's limit on processes "
        f"(ulimit -u{limit}) or that of the container."
    )


def _granted(name: str) -> int | None:
    """The limit in force, None where there is none."""
    if resource is None or not hasattr(resource, name):
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else int(soft)


def _size(number: int) -> str:
    return f"{number / 1e6:,.0f} MB" if number >= 1_000_000 else f"{number / 1e3:,.0f} kB"
