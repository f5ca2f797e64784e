"""Kernels that are kept compiled are those that the source files hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import kernel_sources


@pytest.mark.parametrize(
    "file", kernel_sources.kept(), ids=lambda file: str(file.relative_to(kernel_sources.ROOT))
)
def test_a_change_in_a_called_file_changes_the_caller_too(file: Path) -> None:
    assert kernel_sources.held(file) == kernel_sources.digest(file), (
        "run `python -m tests.kernel_sources`"
    )


def test_sources_are_found_through_others() -> None:
    kernels = kernel_sources.ROOT / "pipelines" / "search" / "_kernels.py"
    names = {file.name for file in kernel_sources.sources(kernels)}
    assert {
        "_epsilon.py",
        "_lattice.py",
        "_pruning.py",
        "_layout.py",
        "_intrinsics.py",
        "kernel_spans.py",
    } <= names
