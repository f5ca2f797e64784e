"""Which source files a compiled kernel comes from, and the digest of them that its file holds.

numba keeps a compiled kernel under a hash of the file of the outermost function, whatever becomes of the files
that it calls into or takes constants from. So each such file holds `MADE_WITH`, a digest of those:
when one of them changes, the digest must, and with it the file and its kernels.

    python -m tests.kernel_sources      # writes every digest that is out of date
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINE = re.compile(r'^MADE_WITH = "[0-9a-f]*".*\n', re.MULTILINE)


def kept() -> list[Path]:
    """The files whose kernels are kept compiled and are made of other files too."""
    files = [*(ROOT / "pipelines").rglob("*.py"), *(ROOT / "profiler").rglob("*.py")]
    return sorted(file for file in files if "cache=True" in _text(file) and sources(file))


def sources(file: Path) -> list[Path]:
    """The other files that decide what the kernels of `file` are, in order of their names."""
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        for other in _taken_in(waiting.pop()) - found - {file}:
            found.add(other)
            # Of the others only constants are taken, and theirs are written there.
            if _compiles(other):
                waiting.append(other)
    return sorted(found)


def digest(file: Path) -> str:
    """Of the sources of `file`, less the digests that they hold themselves."""
    content = "\0".join(LINE.sub("", _text(source)) for source in sources(file))
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def held(file: Path) -> str | None:
    """The digest that `file` holds."""
    found = LINE.search(_text(file))
    return found.group().split('"')[1] if found else None


def write(file: Path) -> None:
    """Put the digest into `file`, where it was or before the first compiled function."""
    text, line = _text(file), f'MADE_WITH = "{digest(file)}"  # see tests/kernel_sources.py\n'
    if LINE.search(text):
        text = LINE.sub(line, text)
    else:
        # After the imports: the first line of code that is neither an import nor the docstring.
        body = ast.parse(text).body
        first = next(n for n in body[1:] if not isinstance(n, ast.Import | ast.ImportFrom))
        lines = text.splitlines(keepends=True)
        at = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))]) - 1
        text = "".join([*lines[:at], line, "\n", *lines[at:]])
    file.write_text(text, encoding="utf-8")


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _taken_in(file: Path) -> set[Path]:
    """Project files of which `file` imports kernels, or constants that its kernels may hold."""
    taken = set()
    for node in ast.walk(ast.parse(_text(file))):
        for module, names in _imports(node):
            path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
            if path.exists() and (_compiles(path) or any(name.isupper() for name in names)):
                taken.add(path)
    return taken


def _compiles(file: Path) -> bool:
    return (
        re.search(
            r"^\s*@(numba\.)?(njit|intrinsic)|types\.ExternalFunction", _text(file), re.MULTILINE
        )
        is not None
    )


def _imports(node: ast.AST) -> list[tuple[str, list[str]]]:
    if isinstance(node, ast.Import):
        return [(name.name, []) for name in node.names]
    if not isinstance(node, ast.ImportFrom) or not node.module:
        return []
    names = [name.name for name in node.names]
    return [(node.module, names), *((f"{node.module}.{name}", [name]) for name in names)]


if __name__ == "__main__":
    for stale in kept():
        if held(stale) != digest(stale):
            write(stale)
            sys.stdout.write(f"{stale.relative_to(ROOT)}\n")
