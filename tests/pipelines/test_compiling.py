"""A child compiles the kernels of scoring: once, and never longer than its parent lives."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from pipelines import config as settings
from pipelines.config import Config
from pipelines.run import compiling
from pipelines.scoring import scorer, selection
from profiler.errors import Cancelled
from profiler.machine.roofs import calibration


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels in which nothing was marked."""
    monkeypatch.setattr(compiling.numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def child(code: str) -> tuple[str, ...]:
    """A command that runs `code` in place of the compiler; its last argument is the configuration."""
    return sys.executable, "-c", code


def never() -> bool:
    return False


def test_the_child_gets_the_configuration_and_is_waited_for(kernels: Path, quick: Config) -> None:
    slow = f"import sys, time; time.sleep(0.2); open({str(kernels / 'given')!r}, 'w').write(sys.argv[1])"
    with compiling.in_child(quick, child(slow)) as wait:
        wait(never)
        assert settings.from_dict(json.loads((kernels / "given").read_text())) == quick


PREPARED = {"gmm.selection.method": "vq-table", "gmm.selection.prepare": True, "gmm.selection.enabled": False}


def test_what_is_marked_is_not_compiled_again_and_what_else_is_chosen_is(kernels: Path, quick: Config) -> None:
    for mark in compiling.marks(quick):
        mark.touch()
    begun = kernels / "begun"
    for change, compiles in (
        ({}, False),
        ({"search.beam": 9.0}, False),
        ({"gmm.selection.top_n": 9, "gmm.selection.enabled": False}, False),
        ({"gmm.selection.enabled": True}, True),
        (PREPARED, True),
        ({"frames.skip": 2}, False),
        ({"frames.skip": 2, "frames.rule": "conditional"}, True),
        ({"gmm.senones": "ci"}, True),
        ({"model": "continuous"}, True),
        ({"device": "torch-cpu"}, False),
    ):
        config = settings.assign(quick, change)
        with compiling.in_child(config, child(f"open({str(begun)!r}, 'w')")) as wait:
            wait(never)
        assert begun.exists() == compiles == (compiling.beside(config) is not None), change
        begun.unlink(missing_ok=True)


def test_a_child_that_fails_is_no_error(kernels: Path, quick: Config) -> None:
    with compiling.in_child(quick, child("raise SystemExit(1)")) as wait:
        wait(never)


def begin(config: Config, alive: Path, cancel: bool) -> None:
    """Wait until a child that writes `alive` again and again has begun, then end with it still running."""
    code = f"import time\nfor n in range(3000): open({str(alive)!r}, 'w').write(str(n)); time.sleep(0.01)"
    with compiling.in_child(config, child(code)) as wait:
        while not alive.exists():
            time.sleep(0.01)
        if cancel:
            wait(lambda: True)
        raise ZeroDivisionError


@pytest.mark.parametrize("cancel", [True, False], ids=["cancelled", "an error of the parent"])
def test_the_child_ends_with_what_it_was_begun_for(kernels: Path, quick: Config, cancel: bool) -> None:
    alive = kernels / "alive"
    with pytest.raises(Cancelled if cancel else ZeroDivisionError):
        begin(quick, alive, cancel)
    before = alive.read_text()
    time.sleep(0.1)
    assert alive.read_text() == before
    assert before != "2999", "it was ended, and did not come to its end"


def test_only_what_is_chosen_is_compiled(quick: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    called = set()
    for name in selection.methods():
        for kind in ("Tied", "Continuous"):
            if (made := getattr(selection._module(name), kind, None)) is not None:
                score = made.score
                noting = lambda *given, score=score, name=(name, kind): called.add(name) or score(*given)  # noqa: E731
                monkeypatch.setattr(made, "score", noting)
    monkeypatch.setattr(scorer, "COMPILED", set())
    monkeypatch.setattr(calibration, "warm_up", lambda *_: None)
    for change, methods in (({}, {"none"}), (PREPARED, {"none", "vq-table"})):
        config = settings.assign(quick, change)
        for mark in compiling.marks(config):
            mark.unlink(missing_ok=True)
        called.clear()
        compiling.compile_for(config)
        assert called == {(method, "Tied") for method in methods}
        assert compiling.is_compiled(config)
        scorer.COMPILED.clear()
