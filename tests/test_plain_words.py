"""Names and docstrings use standard terms: the odd words that a room still has may only become fewer."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.process.children import ROOT

WORDS = {
    "told": "reported, known", "asked": "requested", "beside": "next to, with", "heard": "hypothesis",
    "by heart": "warm", "so many": "N", "gone through": "visited", "moments": "samples", "as set": "overrides",
    "at cursor": "selected", "hindrance": "unavailable_reason", "obstacle": "unavailable_reason", "why not": "reason",
}  # fmt: skip
"""Word → standard term, in docstrings and in names of functions, classes and arguments."""
NAMES = {
    "found": "result", "given": "params", "said": "reference", "straight": "scheduler", "way": "variant",
    "ways": "variants", "at()": "index", "done()": "finish", "shown()": "visible", "whole()": "total", "cannot": "why",
}  # fmt: skip
"""The same for a whole name; with () of functions alone."""
LEFT = """
app/cli 1 app/views 2 app/window 3 pipelines 1 pipelines/config 2 pipelines/experiments 1 pipelines/labs 2
pipelines/run 1 pipelines/scoring 5 pipelines/search 5 pipelines/training 2 profiler/session 2 tests/labs 2
tests/pipelines 1
"""  # room and the most that it may have: 0 without a number; lower it when you replace some

PATTERN = re.compile(rf"(?<![a-z])(?!besides)(?:{'|'.join(WORDS)})(?=s?(?![a-z]))")


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each name and docstring, in lower case; functions with ()."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.arg):
            name = node.arg if isinstance(node, ast.arg) else node.name
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name).strip().lower()
            yield node.lineno, words + "()" * isinstance(node, ast.FunctionDef)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, " ".join(str(node.value.value).lower().split())


def odd_words(file: Path) -> Iterator[str]:
    for line, text in texts(ast.parse(file.read_text(encoding="utf-8"))):
        for term in NAMES.keys() & {text, text.removesuffix("()")}:
            yield f"{file.relative_to(ROOT)}:{line}: {text}: {NAMES[term]}"
        for word in PATTERN.findall(text):
            yield f"{file.relative_to(ROOT)}:{line}: {word}: {WORDS[word]}"


@pytest.mark.slow
def test_the_odd_words_of_each_room_only_become_fewer() -> None:
    most = {room: int(count) for room, count in re.findall(r"([\w/]+)\s+(\d+)", LEFT)}
    rooms: dict[str, list[str]] = defaultdict(list)
    for floor in ("app", "pipelines", "profiler", "tests"):
        for file in (ROOT / floor).rglob("*.py"):
            rooms["/".join(file.relative_to(ROOT).parts[:-1][:2])] += odd_words(file)
    more = {room: sorted(words) for room, words in rooms.items() if len(words) > most.get(room, 0)}
    assert not more, "\n".join(f"{room}: {words}" for room, words in more.items())
