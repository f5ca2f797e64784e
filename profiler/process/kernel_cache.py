"""Where numba caches compiled kernels: a folder for each file of kernels and each state of what it is compiled from.

numba looks at a kernel's own file alone, but compiles functions and constants of other files into it. So the folder is
named by a digest of the file and of all files of the program that it imports, directly or not: a change recompiles what
depends on it, and nothing else. numba loads what it finds there as code; a folder that others can write to is not used.
Where the cache cannot be used, kernels are kept in a folder of this user among the temporary files, and never next to
their sources: those of other sources may lie there.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from profiler.files.paths import CACHE_VARIABLE, KERNELS, cache_path, own_dir
from profiler.process.children import ROOT

PACKAGES: Final = ("pipelines", "profiler")  # The folders with kernels
KEPT: Final = 3  # Number of folders of a file's other states that are kept, for switching between branches

_DIGEST: Final = "[0-9a-f]{24}"
_IMPORT: Final = re.compile(
    rb"^[ \t]*(?:from|import) ((?:pipelines|profiler)\b[\w.]*)(?: import (\([^)]*\)|[^\n]*))?", re.MULTILINE
)
# What is imported there exists in no process.
_FOR_TYPES: Final = re.compile(rb"^if TYPE_CHECKING:\n(?:[ \t].*\n|\n)*", re.MULTILINE)
_REST: Final = re.compile(r"#.*|\bas \w+")


def sources(files: Iterable[Path], root: Path = ROOT) -> dict[str, bytes]:
    """These files and all below `root` that they import, directly or not, by relative path."""
    found: dict[str, bytes] = {}
    ahead = [file.relative_to(root).as_posix() for file in files]
    while ahead:
        path = ahead.pop()
        if path not in found:
            found[path], imported = _read(root / path)
            ahead += [f for module, name in imported for f in [_file(root, module, name)] if f]
    return found


def digest(files: Iterable[Path] = (), root: Path = ROOT) -> str:
    """A name for the present state of what these files are compiled from; without any, of all kernels."""
    if not files:
        all_files = (file for package in PACKAGES for file in (root / package).rglob("*.py"))
        files = [file for file in all_files if any(word in file.read_bytes() for word in (b"numba", b"llvmlite"))]
    made = hashlib.sha256()
    for path, text in sorted(sources(files, root).items()):
        made.update(f"{path}\0{len(text)}\0".encode())
        made.update(text)
    return made.hexdigest()[:24]


@cache
def _read(file: Path) -> tuple[bytes, list[tuple[str, str]]]:
    """The text of a file, and the modules and names of them that it imports from the program."""
    text = file.read_bytes()
    imported = []
    for module, names in _IMPORT.findall(_FOR_TYPES.sub(b"", text)):
        imported += [(module.decode(), name) for name in re.findall(r"\w+", _REST.sub("", names.decode())) or [""]]
    return text, imported


@cache
def _file(root: Path, module: str, name: str) -> str:
    """The file of `name` in a module: of the module of that name where it is one, else of `module`; "": none."""
    base = module.replace(".", "/")
    places = [f"{place}{end}" for place in (f"{base}/{name}", base) for end in (".py", "/__init__.py")]
    return next((place for place in places if (root / place).is_file()), "")


def place(override: str = "") -> Path:
    """Create and return the folder of all kernels, in the cache or, if it cannot be used, among the temporary files.

    `override`: the folder in NUMBA_CACHE_DIR, used instead of the cache. Raises OSError with one sentence.
    """
    wanted = Path(override).absolute() if override else cache_path(KERNELS)
    try:
        return _usable(wanted)
    except OSError as problem:
        reason = problem.strerror or problem
    try:
        return _usable(_among_temporary())
    except OSError as problem:
        raise OSError(
            f"compiled kernels cannot be stored in {wanted} ({reason}), nor among the temporary files "
            f"({problem.strerror or problem}); set {CACHE_VARIABLE} to a folder that can be written"
        ) from problem


def folder(file: Path, kept: Path) -> Path:
    """Return the folder, in `kept` or temporary, for what is compiled from the file's present state; else OSError."""
    name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    inside = f"{name}-{digest([file])}"
    is_new = not (kept / inside).exists()
    try:
        made = _usable(kept / inside)
    except OSError:
        return _usable(own_dir(_among_temporary()) / inside)
    os.utime(made)
    if is_new:
        _forget(name, made)
    return made


def is_of_program(file: Path) -> bool:
    """Whether the program's own kernels may lie in the file."""
    return any(file.is_relative_to(ROOT / package) for package in PACKAGES)


def _usable(made: Path) -> Path:
    own_dir(made)
    with tempfile.TemporaryFile(dir=made):
        pass
    return made


def _among_temporary() -> Path:
    user = f"-{os.geteuid()}" if os.name == "posix" else ""  # elsewhere each user has a temporary folder
    return Path(tempfile.gettempdir()) / f"asrscope-{KERNELS}{user}"


def _forget(name: str, used: Path) -> None:
    """Remove the folders of a file's other states but for the latest, and those of earlier versions alike."""
    pattern = re.compile(rf"(?:{re.escape(name)}-)?{_DIGEST}")
    others = [p for p in used.parent.iterdir() if pattern.fullmatch(p.name) and p != used and not p.is_symlink()]
    for old in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
