"""Commands that comments and documents name as the origin of a figure exist."""

import ast
import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import profiler
from app.cli import bench
from profiler.process.children import ROOT
from tests.bench import constants, corpus
from tests.each import each

MODULE = re.compile(r"python -m\s+((?:tests|pipelines|assets)(?:\.\w+)+)((?:\s+--?[\w-]+(?:\s[\w-]+)?)*)")
BENCH = re.compile(r"asrscope bench ([a-z_]+)")
KIND = re.compile(r"--only\s+([\w-]+)")


def texts() -> Iterator[tuple[Path, str]]:
    for folder in ("app", "pipelines", "profiler", "docs"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".py", ".md"):
                yield file, file.read_text(encoding="utf-8")
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"):
        yield ROOT / name, (ROOT / name).read_text(encoding="utf-8")


def test_every_module_that_is_cited_is_there():
    cited = {name for _, text in texts() for name, _ in MODULE.findall(text)} - {"tests.bench.NAME"}
    assert len(cited) > 10
    assert not [name for name in cited if importlib.util.find_spec(name) is None]


def test_every_kind_of_constant_that_is_cited_is_measured():
    kinds = {
        kind
        for _, text in texts()
        for name, options in MODULE.findall(text)
        if name == "tests.bench.constants"
        for kind in KIND.findall(options)
    }
    assert kinds == set(constants.KINDS)


def test_every_bench_that_is_cited_is_one():
    cited = {name for _, text in texts() for name in BENCH.findall(text)}
    assert len(cited) > 5
    assert cited <= set(bench.names())


def test_whatever_is_listed_as_a_bench_is_one():
    missing = [
        name
        for name in bench.names()
        if "\ndef run(" not in (ROOT / "tests" / "bench" / f"{name}.py").read_text(encoding="utf-8")
    ]
    assert not missing


def test_constants_of_speech_that_is_not_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(corpus, "HUMAN", tmp_path)
    assert constants.main("--only", "speech") == 2
    assert "there is no" in capsys.readouterr().err


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
app/cli 1 app/views 2 app/window 3 pipelines 1 pipelines/experiments 1 pipelines/frontend 1 pipelines/labs 2
pipelines/models 3 pipelines/run 4 pipelines/scoring 5 pipelines/search 8 pipelines/training 2 profiler/session 2
tests/app 1 tests/bench 1 tests/labs 2 tests/pipelines 5
"""  # room and the most that it may have: 0 without a number; lower it when you replace some

PATTERN = re.compile(rf"(?<![a-z])(?!besides)(?:{'|'.join(WORDS)})(?=s?(?![a-z]))")


def texts_words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each name and docstring, in lower case; functions with ()."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.arg):
            name = node.arg if isinstance(node, ast.arg) else node.name
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name).strip().lower()
            yield node.lineno, words + "()" * isinstance(node, ast.FunctionDef)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, " ".join(str(node.value.value).lower().split())


def odd_words(file: Path) -> Iterator[str]:
    for line, text in texts_words(ast.parse(file.read_text(encoding="utf-8"))):
        for term in NAMES.keys() & {text, text.removesuffix("()")}:
            yield f"{file.relative_to(ROOT)}:{line}: {text}: {NAMES[term]}"
        for word in PATTERN.findall(text):
            yield f"{file.relative_to(ROOT)}:{line}: {word}: {WORDS[word]}"


@pytest.mark.slow
def test_the_odd_words_of_each_room_only_become_fewer():
    most = {room: int(count) for room, count in re.findall(r"([\w/]+)\s+(\d+)", LEFT)}
    rooms: dict[str, list[str]] = defaultdict(list)
    for floor in ("app", "pipelines", "profiler", "tests"):
        for file in (ROOT / floor).rglob("*.py"):
            rooms["/".join(file.relative_to(ROOT).parts[:-1][:2])] += odd_words(file)
    more = {room: sorted(words) for room, words in rooms.items() if len(words) > most.get(room, 0)}
    assert not more, "\n".join(f"{room}: {words}" for room, words in more.items())


ROOT_SPEECH = Path(str(profiler.__file__)).parent
OF_SPEECH = re.compile(r"senone|phone|codebook|word_?errors?|\bwer\b|\bgmm\b|\bhmm\b", re.IGNORECASE)
STORED = {("session/facts.py", "senones")}  # Names in the files of sessions: by the module that reads them


def code_words(source: str) -> Iterator[str]:
    """Names in the code of a module and its texts that are not docstrings."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            if isinstance(word := getattr(node, field, None), str):
                yield word
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


@each("path", sorted(ROOT_SPEECH.rglob("*.py")))
def test_no_module_of_the_profiler_knows_of_speech(path):
    module = path.relative_to(ROOT_SPEECH).as_posix()
    text = path.read_text(encoding="utf-8")
    words = code_words(text) if OF_SPEECH.search(text) else ()
    assert not {word for word in words if OF_SPEECH.search(word) and (module, word) not in STORED}
