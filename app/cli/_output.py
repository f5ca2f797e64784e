"""Output of the verbs: text or JSON on stdout, progress on stderr.

The standard streams are always open, take any text, and are safe from control characters: names of stages, settings and
files may be untrusted, so every character that does not print or that the terminal's encoding lacks is escaped. Output
to a stream that was closed before the start (`>&-`) is discarded.
"""

import argparse
import contextlib
import io
import json
import math
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

import msgspec

from app.model.document import Document, Notes, Section, Table, shown_as_text
from app.model.report import Tree
from profiler.files.outputs import OutputError
from profiler.plain import one_line, printable

BROKEN_PIPE: Final = 128 + 13  # Exit status for a broken pipe (SIGPIPE elsewhere): the reader has gone


class Shown(io.TextIOBase):
    """A text stream over `beneath`, which stays open. If the reader has gone, a `patient` one discards text."""

    def __init__(self, beneath: TextIO, patient: bool) -> None:
        self.beneath = beneath
        self._patient = patient
        self.failed = False
        if isinstance(beneath, io.TextIOWrapper):
            beneath.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        with self._trying():
            self.beneath.write(printable(text, keep="\n\t"))
        return len(text)

    def flush(self) -> None:
        with self._trying():
            self.beneath.flush()

    @contextmanager
    def _trying(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as problem:
            self.failed = True
            if self._patient:
                return
            if isinstance(problem, BrokenPipeError) or not isinstance(problem, OSError):
                raise
            reason = (problem.strerror or str(problem)).lower()
            raise OutputError(f"Standard output cannot be written: {reason}.") from problem

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        with contextlib.suppress(ValueError):
            return self.beneath.isatty()
        return False

    def fileno(self) -> int:
        return self.beneath.fileno()

    def close(self) -> None:
        pass

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self.beneath, "encoding", None) or "utf-8"

    @property
    def buffer(self) -> BinaryIO:
        return self.beneath.buffer


@contextmanager
def printable_output() -> Iterator[None]:
    """Standard output and error as above; restored at the end."""
    if isinstance(sys.stdout, Shown):  # a verb that calls another
        yield
        return
    for descriptor in range(3):
        # Else the next file that is opened, a session perhaps, would get the number that libraries print to.
        try:
            os.fstat(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)
    before: tuple[Any, Any] = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        out = Shown(before[0] or nowhere, patient=False)
        errors = Shown(before[1] or nowhere, patient=True)
        sys.stdout, sys.stderr = out, errors
        try:
            yield
        finally:
            with contextlib.suppress(OSError, ValueError):
                out.flush()
            errors.flush()
            # The interpreter would retry at its end, and complain.
            sys.stdout = None if out.failed else before[0]
            sys.stderr = None if errors.failed else before[1]


def json_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def report_flags(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` and what the window adds to it, for verbs that end with `print_report`."""
    json_flag(parser)
    parser.add_argument("--document", action="store_true", help=argparse.SUPPRESS)


def repeatable(parser: argparse.ArgumentParser, option: str, metavar: str, help: str) -> None:
    parser.add_argument(option, metavar=metavar, action="append", default=[], help=help)


def number_flag(
    parser: argparse.ArgumentParser, option: str, least: int, most: int, help: str, default: int | None = None
) -> None:
    parser.add_argument(option, metavar="N", type=whole_number(least, most), default=default, help=help)


def print_json(tree: Tree) -> None:
    def escaped(match: re.Match[str]) -> str:
        character = match[0]
        with contextlib.suppress(UnicodeEncodeError, LookupError):
            character.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
            if printable(character) == character:
                return character
        return json.dumps(character)[1:-1]

    print(re.sub("[^ -~]", escaped, json.dumps(finite(tree), ensure_ascii=False, allow_nan=False)))


def print_report(tree: Tree, arguments: argparse.Namespace, document: Callable[[Tree], Document]) -> None:
    """Print `tree` as one JSON object, for the window with its document in it; else the document as text."""
    if arguments.document:
        print_json(tree | {"document": msgspec.to_builtins(document(tree))})
    elif arguments.json:
        print_json(tree)
    else:
        print(text(document(tree)))


GAP: Final = "  "


def text(document: Document) -> str:
    """A document as a terminal shows it: sentences, tables with aligned columns; no charts."""
    lines = [document.summary] if document.summary else []
    apart = False
    for part in document.parts:
        if not shown_as_text(part):
            continue
        if isinstance(part, Section | Table):
            apart = bool(lines)
        if isinstance(part, Section):
            continue
        lines += [""] * apart
        if isinstance(part, str):
            lines.append(part)
        elif isinstance(part, Notes):
            lines += [f"note: {sentence}" for sentence in part.sentences]
        elif isinstance(part, Table):
            lines += _table(part)
        apart = isinstance(part, Table)
    return page(lines)


def _table(table: Table) -> Iterator[str]:
    """Headers, broken where they are wider than their column, and rows with their sentences below."""
    below = {place % len(table.headers) for place in table.sentences}
    shown = [place for place in range(len(table.headers)) if place not in below]
    rows = [["–" if cell is None else printable(str(cell)) for cell in row] for row in table.rows]
    widths, heads, right = dict[int, int](), dict[int, list[str]](), table.numbers
    for place in shown:
        words = table.headers[place].split()
        widths[place] = max(map(len, (*words, *(row[place] for row in rows))), default=0)
        heads[place] = textwrap.wrap(table.headers[place], max(widths[place], 1), break_on_hyphens=False) or [""]

    def line(cells: Mapping[int, str] | Sequence[str]) -> str:
        filled = (f"{cells[place]:{'>' if place in right else '<'}{widths[place]}}" for place in shown)
        return GAP.join(filled).rstrip()

    high = max(map(len, heads.values()))
    for at in range(high):
        yield line({place: ([""] * (high - len(head)) + head)[at] for place, head in heads.items()})
    for row in rows:
        yield line(row)
        for place in sorted(below):
            if row[place] not in ("", "–"):
                yield f"{GAP}{table.headers[place] + ': ' if len(below) > 1 else ''}{row[place]}"


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number from `least` to `most`."""

    def read(text: str) -> int:
        digits = text.strip()
        if digits.isascii() and digits.isdecimal() and len(digits) < 12:
            number = int(digits)
            if least <= number <= most:
                return number
        raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}, not {one_line(text)!r}")

    return read


def speech_flags(parser: argparse.ArgumentParser, audio: str | None = None, transcripts: str | None = None) -> None:
    """Add --audio and --transcripts, with their help."""
    parser.add_argument("--audio", metavar="FILE", nargs="+", action="extend", default=[], help=audio)
    parser.add_argument("--transcripts", metavar="FILE", help=transcripts)


def picture_arguments(parser: argparse.ArgumentParser, help: str) -> None:
    """Add --png and --theme."""

    def named(text: str) -> str:
        if not text.lower().endswith(".png"):
            raise argparse.ArgumentTypeError(f"must be a file that ends in .png, not {one_line(text)!r}")
        return text

    parser.add_argument("--png", metavar="F", type=named, help=help)
    parser.add_argument("--theme", choices=("light", "dark"), default="dark")


LONGEST: Final = 600  # Characters of a sentence: some list the available choices


def complain(sentence: str) -> None:
    print(f"asrscope: {one_line(sentence, LONGEST)}", file=sys.stderr)


def page(lines: Iterable[str]) -> str:
    """The text of `lines`; names from untrusted files cannot start new lines in it."""
    return "\n".join(printable(line) for line in lines)


def finite(tree: Tree) -> Tree:
    """A tree of JSON values: numpy scalars as Python's, null for what is not a finite number."""
    return {str(key): _finite(value) for key, value in tree.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return finite(value)
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if isinstance(value, range):
        return {"from": value[0], "to": value[-1]}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return _finite(value.item()) if hasattr(value, "item") else value  # a numpy scalar


PROGRESS = "ASRSCOPE_PROGRESS"  # "lines": how much of a step is done, without a terminal, too; the window reads it


class Progress(contextlib.AbstractContextManager["Progress"]):
    """Progress on stderr: one line that moves on a terminal, until its context ends; plain lines otherwise."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last, self._width = "", 0

    def __call__(self, stage: str, fraction: float | None = None) -> None:
        """Show the current step; `fraction` is None if the remaining part is unknown."""
        if self._terminal:
            share = "" if fraction is None else f" {fraction:4.0%}"
            self._move(f"{one_line(stage)}{share}")
            return
        text = one_line(stage)
        if fraction is not None and os.environ.get(PROGRESS) == "lines":
            text += f" {fraction:.0%}"
        if text != self._last:
            print(text, file=sys.stderr, flush=True)
        self._last = text

    def __exit__(self, *_: object) -> None:
        if self._terminal and self._width:
            self._move("")
            self._move("")

    def _move(self, text: str) -> None:
        stream = sys.stderr.beneath if isinstance(sys.stderr, Shown) else sys.stderr
        with contextlib.suppress(OSError):
            print(f"\r{text:{self._width}}", end="", file=stream, flush=True)
        self._width = len(text)


@contextmanager
def warnings_in_sentences() -> Iterator[None]:
    """While this lasts, a library's warning is one sentence on stderr, once, without the file and line that gave it."""
    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], filename: str, *_: Any, **__: Any) -> None:
        sentence = f"{_origin(category, filename)} warns: {one_line(str(message))}"
        if sentence not in printed:
            printed.add(sentence)
            complain(sentence)

    before, warnings.showwarning = warnings.showwarning, show
    try:
        yield
    finally:
        warnings.showwarning = before


def _origin(category: type[Warning], filename: str) -> str:
    """The library that has warnings of this kind, or to which the file belongs that gave it."""
    if category.__module__ != Warning.__module__:
        return category.__module__.partition(".")[0]
    _, inside, path = Path(filename).as_posix().rpartition("/site-packages/")
    return path.partition("/")[0].removesuffix(".py") if inside else "Python"
