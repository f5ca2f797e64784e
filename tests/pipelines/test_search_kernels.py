"""Kernels that are kept compiled are those that the source files hold."""

import hashlib
import importlib
from pathlib import Path

import pytest

from pipelines import search

FOLDER = Path(search.__file__).parent
SPANS = FOLDER.parents[1] / "profiler" / "kernel_spans.py"
COMMON = (FOLDER / "_layout.py", FOLDER / "_intrinsics.py")
CALLED = {
    "_lattice": COMMON,
    "_pruning": COMMON,
    "_epsilon": (*COMMON, FOLDER / "_lattice.py"),
    "_kernels": (
        *COMMON,
        SPANS,
        *(FOLDER / f"_{n}.py" for n in ("epsilon", "lattice", "pruning")),
    ),
}


@pytest.mark.parametrize("name", CALLED)
def test_a_change_in_a_called_file_changes_the_caller_too(name):
    content = b"".join(path.read_bytes() for path in CALLED[name])
    digest = hashlib.sha256(content).hexdigest()[:12]
    module = importlib.import_module(f"pipelines.search.{name}")
    assert digest == module.MADE_WITH, f"write MADE_WITH = {digest!r} in {name}.py"
