"""A setting's name that is spelled wrongly anywhere is found by `make lint`, before a run is."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pipelines import config as settings

ROOT = Path(__file__).resolve().parents[1]
HOLDERS: dict[str, tuple[type[msgspec.Struct], ...]] = {
    # The search calls its own so, too.
    "config": (settings.Config, settings.Search),
    "gmm": (settings.Gmm,),
    "selection": (settings.Selection,),
    "search": (settings.Search,),
    "dnn": (settings.Dnn,),
    "graph": (settings.Graph,),
    "frames": (settings.Frames,),
    "placement": (settings.Placement,),
}
"""What settings are called where they are read, and what they are."""
TYPO = "_tpyo"
UNSEEN = """
[[tool.mypy.overrides]]
module = ["torch.*", "PySide6.*", "shiboken6.*", "numpy.*", "safetensors.*"]
follow_imports = "skip"
follow_imports_for_stubs = true
"""
"""Libraries tell nothing of our settings, and reading them takes three times as long as all that is ours."""
MIN_PLANTED = 120
"""Places that read a setting; fewer found would say that this test looks in the wrong way."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed"),
]


def is_setting(node: ast.Attribute) -> bool:
    """Whether it is read of something that is called as settings are."""
    name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
    return any(node.attr in held.__struct_fields__ for held in HOLDERS.get(name.lstrip("_"), ()))


def reads(tree: ast.Module) -> Iterator[ast.Attribute]:
    """Where a setting is read, the last name of each chain alone: beyond the first error all is unknown."""
    inner = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node not in inner and is_setting(node):
            yield node


def planted(source: str) -> tuple[str, set[int]]:
    """`source` with every such name spelled wrongly, and the lines where."""
    lines = source.encode().split(b"\n")
    found = sorted(reads(ast.parse(source)), key=lambda n: (n.end_lineno, n.end_col_offset), reverse=True)
    for node in found:
        line = lines[node.end_lineno - 1]
        lines[node.end_lineno - 1] = line[: node.end_col_offset] + TYPO.encode() + line[node.end_col_offset :]
    return b"\n".join(lines).decode(), {node.end_lineno for node in found}


def test_a_misspelled_setting_fails_the_types_check_wherever_it_is(tmp_path: Path) -> None:
    wanted: set[tuple[str, int]] = set()
    shadows: list[str] = []
    for package in ("app", "pipelines"):
        for path in sorted((ROOT / package).rglob("*.py")):
            text, lines = planted(path.read_text(encoding="utf-8"))
            if lines:
                shadow = tmp_path / f"{len(shadows)}.py"
                shadow.write_text(text, encoding="utf-8")
                shadows += ["--shadow-file", str(path), str(shadow)]
                wanted |= {(path.relative_to(ROOT).as_posix(), line) for line in lines}
    assert len(wanted) >= MIN_PLANTED
    rules = tmp_path / "pyproject.toml"
    rules.write_text((ROOT / rules.name).read_text(encoding="utf-8") + UNSEEN, encoding="utf-8")
    options = ["--config-file", str(rules), "--cache-dir", os.devnull, "--no-pretty", "--show-error-codes"]
    # Of the files without a setting only what the others import is looked at.
    options += ["--follow-imports", "silent"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *shadows, *shadows[1::3]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = {
        (Path(name).as_posix(), int(line))
        for name, line in re.findall(
            rf"^(.+?):(\d+): error: .*{TYPO}.*\[(?:attr-defined|union-attr)\]$", done.stdout, re.MULTILINE
        )
    }
    assert done.returncode == 1, done.stdout + done.stderr
    assert sorted(wanted - said) == []
