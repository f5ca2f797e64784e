"""Markdown as GitHub reads it (GFM): text of strangers in it can begin nothing, end nothing and hide nothing.

What begins HTML, code, an escape or a cell is written as a character reference, which stands for itself everywhere
outside code; what else means something within a line has a backslash before it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from profiler.plain import one_line, printable

LONGEST: Final = 2000  # Characters of a text: a sentence or a list of settings has a few hundred

_REFERENCES: Final = {ord(c): f"&#{ord(c)};" for c in "|`\\"} | {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
}
_MARKS: Final = {ord(c): f"\\{c}" for c in "*_[]#~!"}


def text(said: str) -> str:
    """Any text on one line, to be read as it is."""
    shown = re.sub(" +", " ", one_line(said, LONGEST)).strip()
    return shown.translate(_REFERENCES | _MARKS)


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[str] = ()
) -> list[str]:
    """The lines of a table of any texts; `numbers`: titles of the columns that are aligned on the right."""
    rule = ["--:" if title in numbers else "---" for title in head]
    # Some readers join an empty cell to its neighbour.
    filled = ([text(cell) or "–" for cell in row] for row in (head, *rows))
    first, *rest = map(_row, filled)
    return [first, _row(rule), *rest]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def bullets(lines: Iterable[str]) -> list[str]:
    """The lines as a list; those that are indented belong to the one before."""
    return [f"{'  ' if line.startswith(' ') else ''}- {text(line)}" for line in lines]


def code(line: str) -> list[str]:
    """A line for a shell, in a block that nothing in it can end."""
    shown = printable(line)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", shown))])
    return [f"{fence}sh", shown, fence]
