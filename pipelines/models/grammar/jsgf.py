"""Reads grammars in the Java Speech Grammar Format (JSGF 1.0, W3C note of 5 June 2000).

Rules, alternatives with weights, groups, optional groups, `*` and `+`, quoted words, `<NULL>`, `<VOID>`, comments and
tags (which are skipped). Where only some alternatives have a weight the others weigh 1. Imports are refused. The
encoding is what the first line declares, else UTF-8. A recursive-descent parser over a list of tokens.
"""

import codecs
import io
import os
import re
from pathlib import Path
from typing import NamedTuple

from pipelines.models.grammar import expression
from pipelines.models.grammar.expression import NEVER, NOTHING, Expression, Grammar, GrammarError, Sequence, optional
from profiler.files import inputs
from profiler.plain import one_line

MAGIC = b"#JSGF"
HEADER_BYTES = 400  # in which the first line is looked for, in any encoding
MIN_WEIGHT, LARGEST_WEIGHT = 1e-30, 1e30
"""Beyond these a share of several weights could be no number; probabilities in use are far from either."""
SHOWN = 40  # characters of a name or word that a sentence repeats
_HEADER = re.compile(r"\s*#JSGF[ \t]+V1(\.\d+)?(?P<declared>[ \t][^;\n]*)?;", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"#\0", "utf-16-le"),
    (b"\0#", "utf-16-be"),
)
"""What a file begins with, and its encoding whatever the first line declares."""
_TOKEN = re.compile(
    r"""
    (?P<blank>   \s+ | //[^\n]* | /\*.*?\*/ )
  | (?P<weight>  /\s*(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*/ )
  | (?P<quoted>  "(?:[^"\\]|\\.)*+" )
  | (?P<rule>    <[^<>\s]+> )
  | (?P<mark>    [;=|*+()\[\]] )
  | (?P<word>    [^\s;=|*+<>()\[\]{}/"\\]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_CLOSING = {"(": ")", "[": "]"}
_CONSTANTS: dict[str, Expression] = {"NULL": NOTHING, "VOID": NEVER}


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def begins(head: bytes) -> bool:
    return MAGIC in head[:HEADER_BYTES].replace(b"\0", b"").upper()


def read(path: str | os.PathLike[str]) -> Grammar:
    """The grammar; GrammarError (one sentence, with the line) for a file that is none."""
    file = Path(path)
    text = _text(file)
    header = _HEADER.match(text)
    if header is None:
        raise GrammarError(f"{one_line(str(file))} is not a JSGF grammar: it does not begin with '#JSGF V1.0;'.")
    return _Parser(file, _tokens(file, text, header.end())).grammar()


def _text(file: Path) -> str:
    """The text in the encoding that the file shows or declares."""
    try:
        content = inputs.read_bytes(file, "a grammar", expression.MAX_FILE_BYTES)
    except inputs.InputError as error:
        raise GrammarError(f"The grammar cannot be read: {error}") from None
    header = _HEADER.match(content[:HEADER_BYTES].decode("latin-1"))
    declared = ((header and header["declared"]) or "").split()[:1]
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "")
    encoding = encoding or (declared[0] if declared and _is_encoding(declared[0]) else "utf-8")
    try:
        return io.StringIO(content.decode(encoding), newline=None).read()
    except UnicodeError as error:
        at = getattr(error, "start", 0)
        line = content.count(b"\n", 0, at) + 1
        raise GrammarError(
            f"{one_line(str(file))}, line {line}: the text is not {encoding.upper()}; save the file as UTF-8, or "
            "declare its encoding in the first line, as in '#JSGF V1.0 ISO8859-1;'."
        ) from None


def _is_encoding(name: str) -> bool:
    """Whether `name` is an encoding whose first line is written as in ASCII, as this one could be read so."""
    try:
        # An encoding of Python's own strings would eat the backslashes.
        return "escape" not in name.lower() and b"#JSGF V1.0;".decode(name) == "#JSGF V1.0;"
    except (LookupError, ValueError):
        return False


def _tokens(file: Path, text: str, at: int) -> list[_Token]:
    tokens: list[_Token] = []
    line = 1 + text.count("\n", 0, at)
    nested = True
    while at < len(text):
        found = _TOKEN.match(text, at)
        end = found.end() if found else -1
        if text[at] == "{":
            end, nested = _tag_end(text, at, nested)
        if end < 0:
            wrong = {
                "{": "the tag that begins here has no '}'",
                "}": "a '}' ends a tag, and none is open here; inside a tag it is written \\}",
            }.get(text[at], f"{text[at]!r} is no part of a JSGF rule")
            raise GrammarError(f"{one_line(str(file))}, line {line}: {wrong}.")
        if len(tokens) >= expression.MAX_WORDS:
            raise GrammarError(f"{one_line(str(file))} has more than {expression.MAX_WORDS:,} words and marks.")
        if found is not None and found.lastgroup != "blank":
            tokens.append(_Token(str(found.lastgroup), found[0], line))
        line += text.count("\n", at, end)
        at = end
    return [*tokens, _Token("end", "the end of the file", line)]


def _tag_end(text: str, at: int, nested: bool) -> tuple[int, bool]:
    """Where the tag ends that begins at `at`, -1 if nowhere; and whether the braces of tags nest in this file.

    A tag ends at its first '}' by the note; but tags of SRGS have pairs of braces inside.
    """
    depth, first = 0, -1
    for brace in _BRACE.finditer(text, at):
        if brace[0] == "{":
            depth += 1
        elif brace[0] == "}":
            depth -= 1
            first = brace.end() if first < 0 else first
            if depth == 0 or not nested:
                return first if not nested else brace.end(), nested
    return first, False


def _rule_text(rule: str) -> str:
    return f"<{one_line(rule, SHOWN)}>"


class _Parser:
    """Goes through the tokens once; `_at` is the next one."""

    def __init__(self, file: Path, tokens: list[_Token]) -> None:
        self._file = file
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._name = ""

    def grammar(self) -> Grammar:
        rules: dict[str, Expression] = {}
        public = []
        if self._accept("word", "grammar"):
            self._name = self._expect("word", "", "the grammar's name").text
            self._expect("mark", ";", "';' after the grammar's name")
        while not self._accept("end"):
            if self._accept("word", "import"):
                self._at -= 1
                raise self._problem("import is not supported; write the imported rules into this file")
            is_public = self._accept("word", "public") is not None
            rule = self._expect("rule", "", "a rule such as <name>")
            name = self._own_name(rule)
            if name in _CONSTANTS:
                raise self._problem(f"{_rule_text(name)} cannot be defined", rule)
            if name in rules:
                raise self._problem(f"{_rule_text(name)} is defined a second time", rule)
            self._expect("mark", "=", f"'=' after {_rule_text(name)}")
            rules[name] = self._alternatives()
            self._expect("mark", ";", f"';' at the end of {_rule_text(name)}")
            if is_public:
                public.append(name)
        if not public:
            raise GrammarError(f"{one_line(str(self._file))} has no public rule, so nothing can be said.")
        for token in self._tokens:
            if token.kind == "rule" and self._own_name(token) not in {*rules, *_CONSTANTS}:
                raise self._problem(f"{_rule_text(token.text[1:-1])} is not defined", token)
        return Grammar(self._file, rules, tuple(public))

    def _alternatives(self) -> Expression:
        choices = []
        while True:
            weight = self._accept("weight")
            value = float(weight.text.strip("/")) if weight else 1.0
            if value != 0.0 and not MIN_WEIGHT <= value <= LARGEST_WEIGHT:
                raise self._problem(f"a weight should be 0 or from {MIN_WEIGHT:g} to {LARGEST_WEIGHT:g}", weight)
            items: list[Expression] = []
            while (item := self._item()) is not None:
                items.append(item)
            if not items:
                raise self._problem(f"a word, a rule or a group should stand where {self._next()} does")
            # What weighs nothing is never said.
            if value > 0.0 and NEVER not in items:
                choices.append((value, items[0] if len(items) == 1 else Sequence(tuple(items))))
            if not self._accept("mark", "|"):
                return choices[0][1] if len(choices) == 1 else expression.Alternatives(tuple(choices))

    def _item(self) -> Expression | None:
        item: Expression
        token = self._tokens[self._at]
        if token.kind == "word":
            item = expression.Word(token.text, token.line)
        elif token.kind == "quoted":
            said = re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL).split()
            item = Sequence(tuple(expression.Word(word, token.line) for word in said))
        elif token.kind == "rule":
            name = self._own_name(token)
            item = _CONSTANTS.get(name) or expression.Reference(name, token.line)
        elif token.text in _CLOSING and token.kind == "mark":
            self._at += 1
            self._depth += 1
            if self._depth > expression.MAX_DEPTH:
                raise self._problem(f"groups lie more than {expression.MAX_DEPTH} deep", token)
            inner = self._alternatives()
            self._depth -= 1
            if self._tokens[self._at].text != _CLOSING[token.text]:
                raise self._problem(
                    f"the '{token.text}' of line {token.line} should be closed where {self._next()} stands"
                )
            item = optional(inner) if token.text == "[" else inner
            if item == optional(NEVER):
                item = NOTHING
        else:
            return None
        self._at += 1
        while operator := self._accept("mark", "*") or self._accept("mark", "+"):
            if item == NEVER:
                item = NOTHING if operator.text == "*" else NEVER
            elif item != NOTHING:
                item = optional(expression.Repeat(item)) if operator.text == "*" else expression.Repeat(item)
        return item

    def _own_name(self, rule: _Token) -> str:
        """The rule's simple name; a qualified one must be of this grammar."""
        package, _, name = rule.text[1:-1].rpartition(".")
        if package and package not in (self._name, self._name.rpartition(".")[2]):
            raise self._problem(f"{_rule_text(rule.text[1:-1])} is of another grammar, which is not supported", rule)
        return name

    def _accept(self, kind: str, text: str = "") -> _Token | None:
        token = self._tokens[self._at]
        if token.kind != kind or (text and token.text != text):
            return None
        self._at += 1
        return token

    def _expect(self, kind: str, text: str, what: str) -> _Token:
        token = self._accept(kind, text)
        if token is None:
            raise self._problem(f"{what} should stand where {self._next()} does")
        return token

    def _next(self) -> str:
        token = self._tokens[self._at]
        return token.text if token.kind == "end" else f"'{one_line(token.text, SHOWN)}'"

    def _problem(self, what: str, token: _Token | None = None) -> GrammarError:
        line = (token or self._tokens[self._at]).line
        return GrammarError(f"{one_line(str(self._file))}, line {line}: {what}.")
