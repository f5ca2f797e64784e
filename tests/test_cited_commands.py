"""Commands that comments and documents name as the origin of a figure exist."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import bench
from profiler.process.children import ROOT
from tests.bench import _data, constants

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


def test_every_module_that_is_cited_is_there() -> None:
    cited = {name for _, text in texts() for name, _ in MODULE.findall(text)} - {"tests.bench.NAME"}
    assert len(cited) > 10
    assert not [name for name in cited if importlib.util.find_spec(name) is None]


def test_every_kind_of_constant_that_is_cited_is_measured() -> None:
    kinds = {
        kind
        for _, text in texts()
        for name, options in MODULE.findall(text)
        if name == "tests.bench.constants"
        for kind in KIND.findall(options)
    }
    assert kinds == set(constants.KINDS)


def test_every_bench_that_is_cited_is_one() -> None:
    cited = {name for _, text in texts() for name in BENCH.findall(text)}
    assert len(cited) > 5
    assert cited <= set(bench.names())


def test_whatever_is_listed_as_a_bench_is_one() -> None:
    missing = [
        name
        for name in bench.names()
        if "\ndef run(" not in (ROOT / "tests" / "bench" / f"{name}.py").read_text(encoding="utf-8")
    ]
    assert not missing


def test_constants_of_speech_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_data, "HUMAN", tmp_path)
    assert constants.main(["--only", "speech"]) == 2
    assert "there is no" in capsys.readouterr().err
