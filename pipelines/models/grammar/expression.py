"""What a grammar says, as a tree of five kinds of nodes.

A grammar is a probability distribution over the ways to say something: alternatives share their
probability by their weights, what may be left out is said half of the time, and a repetition goes
on half of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from profiler.errors import BadInput

MAX_DEPTH = 100
"""Groups and rules within each other; more would exhaust the stack before it helps anybody."""


class GrammarError(BadInput):
    """A grammar that cannot be read or used, in one sentence."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word as written, in line `line` of the file."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Reference:
    """What the rule called `rule` says."""

    rule: str
    line: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after another; none of them is the empty sentence."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of several, each with a weight above 0; none of them is what can never be said."""

    choices: tuple[tuple[float, Expression], ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Once or more often."""

    item: Expression


Expression = Word | Reference | Sequence | Alternatives | Repeat

NOTHING = Sequence(())
NEVER = Alternatives(())


def optional(item: Expression) -> Expression:
    """`item` or nothing, with even chances."""
    return Alternatives(((1.0, item), (1.0, NOTHING)))


@dataclass(frozen=True)
class Grammar:
    """`rules` by name; a sentence is what one of the `public` ones says. `path`: where from."""

    path: Path
    rules: dict[str, Expression]
    public: tuple[str, ...]


def decoded(path: Path, limit: int) -> str:
    """The text of a grammar's file of at most `limit` bytes; GrammarError in one sentence."""
    try:
        with path.open("rb") as handle:
            data = handle.read(limit + 1)
    except OSError as error:
        raise GrammarError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > limit:
        raise GrammarError(f"{path} is over {limit} bytes; no grammar is.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise GrammarError(f"{path} is not a grammar: it is not UTF-8 text.") from None
