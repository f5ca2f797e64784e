"""Every module that is started with `python -m` prints its usage for --help, and does nothing else."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from profiler.process.children import ROOT, read_arguments


def started_modules() -> list[str]:
    """The modules of the program that do something when they are started, as `python -m` names them."""
    found = []
    for package in ("app", "pipelines", "profiler", "assets"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if '__name__ == "__main__":' in path.read_text("utf-8"):
                parts = path.relative_to(ROOT).with_suffix("").parts
                found.append(".".join(parts).removesuffix(".__main__"))
    return found


@pytest.mark.parametrize("module", sorted({*started_modules()}))
def test_help_prints_the_usage_of_a_module_and_ends(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # what builds with other programs finds none
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    for loaded in (module, f"{module}.__main__"):
        monkeypatch.delitem(sys.modules, loaded, raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__")
    shown = capsys.readouterr()
    assert ended.value.code in {0, None}
    assert shown.out.startswith("usage: ")
    assert shown.err == ""
    assert not list(tmp_path.iterdir())


def test_the_modules_are_found() -> None:
    assert {"assets.speech.build", "pipelines.worker", "pipelines.labs"} <= {*started_modules()}


def test_what_a_module_is_given_comes_in_the_order_of_its_names() -> None:
    names = ("TARGET", "RECIPE")
    assert read_arguments("m", "", *names, arguments=["a/b", '{"c": -1}']) == ["a/b", '{"c": -1}']
    assert read_arguments("m", "", "JOB?", "RESULTS?", arguments=[]) == []
    assert read_arguments("m", "", "JOB?", "RESULTS?", arguments=["job", "results"]) == ["job", "results"]
    assert read_arguments("m", "", "PART+", arguments=["cpu", "1"]) == ["cpu", "1"]


@pytest.mark.parametrize(
    ("names", "arguments"),
    [((), ["x"]), (("A",), []), (("A",), ["x", "y"]), (("PART+",), []), (("A",), ["--loud", "x"])],
)
def test_what_a_module_does_not_take_is_refused(
    names: tuple[str, ...], arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read_arguments("pipelines.some", "", *names, arguments=arguments)
    assert ended.value.code == 2
    assert "usage: python -m pipelines.some" in capsys.readouterr().err
