"""Search graphs in the cache: their names, and who may build them.

A graph is named by the content of everything it is made from. A build locks its folder, so that two processes do not
build the same graph; the finished file is renamed into place. A graph that another process has mapped may be removed:
its pages stay with that process.
"""

import hashlib
import importlib.metadata
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.models import dictionary
from pipelines.models.grammar import expression
from pipelines.models.kaldi import contexts
from pipelines.models.language import arpa
from pipelines.search.graph.build import COMPILER_VERSION
from pipelines.search.graph.recipe import Recipe
from pipelines.search.graph.wfst import VERSION, GraphError
from profiler.files import cache
from profiler.files.inputs import InputError, open_input
from profiler.plain import one_line

try:
    import fcntl
except ImportError:  # Windows: two builds at once both do the work, and one of them stays
    fcntl = None  # type: ignore[assignment]

LARGEST_FILE = 1 << 30  # Of a model's files that are hashed; no definition of senones comes near
LARGEST = {
    "dictionary": dictionary.MAX_FILE_BYTES,
    "language_model": arpa.MAX_BYTES,
    "grammar": expression.MAX_FILE_BYTES,
    "table": dictionary.MAX_FILE_BYTES,
}
_BUILD_PREFIX = ".build-"


def path_of(recipe: Recipe) -> Path:
    """The file of the graph of `recipe` in the cache, if it is there; GraphError where its files cannot be read."""
    return cache.path_of(cache.GRAPHS, key(recipe))


def key(recipe: Recipe) -> str:
    """Hash of the content of all files, the options and the versions that decide the graph."""
    facts: dict[str, object] = dict(recipe.as_dict())
    for name in ("mdef", "transition_matrices", "noisedict", *contexts.FILES) if not recipe.units else ():
        file = Path(recipe.model, name)
        if os.path.lexists(file):
            facts[f"model/{name}"] = digest_of(file, name)
    facts["model"] = ""
    for name in LARGEST:
        facts[name] = digest_of(Path(str(facts[name])), name) if facts[name] else ""
    facts["versions"] = [COMPILER_VERSION, VERSION, importlib.metadata.version("kaldifst")]
    text = json.dumps(facts, sort_keys=True).encode()
    kind = recipe.parts or ("grammar" if recipe.grammar else f"{recipe.vocabulary}-{recipe.order}")
    return f"{kind}-{hashlib.sha256(text).hexdigest()[:24]}"


@contextmanager
def workplace(target: Path, wait: Callable[[], None]) -> Iterator[Path]:
    """An empty folder to build `target` in, gone afterwards; on the same file system where that can be written.

    While another process builds the same graph `wait` is called, which may raise.
    """
    try:
        place, lock = _locked(target, wait)
    except OSError:  # somebody else's cache
        place, lock = Path(tempfile.mkdtemp()), None
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _locked(target: Path, wait: Callable[[], None]) -> tuple[Path, int | None]:
    if fcntl is None:
        return Path(tempfile.mkdtemp(prefix=_BUILD_PREFIX, dir=target.parent)), None
    place = target.with_name(f"{_BUILD_PREFIX}{target.stem}")
    target.parent.mkdir(parents=True, exist_ok=True)
    while True:
        place.mkdir(exist_ok=True)
        try:
            # A link in its place would have another folder emptied.
            lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue  # removed by the one who had it
        if not _taken(lock, place):
            break
        os.close(lock)
        wait()
    # What a killed process left.
    for left in place.iterdir():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink()
    return place, lock


def _taken(lock: int, place: Path) -> bool:
    """Whether another process has the folder, or had it and removed it in between."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    try:
        return not os.path.samestat(os.fstat(lock), place.stat())
    except FileNotFoundError:
        return True


def digest_of(file: Path, name: str) -> str:
    """Digest of the content of a file of that name; GraphError where it cannot be read."""
    what = name.replace("_", " ")
    try:
        with open_input(file, f"a {what}", LARGEST.get(name, LARGEST_FILE)) as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except InputError as error:
        raise GraphError(f"The {what} cannot be read: {error}") from None
    except OSError as error:
        raise GraphError(f"{one_line(str(file))} cannot be read: {error.strerror or error}.") from error
