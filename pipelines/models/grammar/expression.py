"""What a grammar says, as a tree of five kinds of nodes.

A grammar is a probability distribution over the ways to say something: alternatives share their probability by their
weights, what may be left out is said half of the time, and a repetition goes on half of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from profiler.errors import BadInput
from profiler.files import inputs

MAX_FILE_BYTES = 8 << 20
MAX_WORDS = 500_000  # of a grammar with all its marks, or of a list; nearly four times the shipped dictionary
MAX_DEPTH = 100  # groups and rules within each other; more would exhaust the stack before it helps anybody


class GrammarError(BadInput):
    """A grammar that cannot be read or used, in one sentence."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word as written, in line `line` of the file."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to the rule called `rule`."""

    rule: str
    line: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after another; none of them is the empty sentence."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of several, each with a weight above 0; without any, it matches nothing."""

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


def decoded(path: Path) -> str:
    """The text of a grammar's file; GrammarError in one sentence."""
    try:
        return inputs.read_text(path, "a grammar", MAX_FILE_BYTES)
    except inputs.InputError as error:
        raise GrammarError(f"The grammar cannot be read: {error}") from None
