"""A folder in which a stranger left code under the names that programs import, each leaving a mark when it runs."""

from pathlib import Path

NAMES = (
    "app", "pipelines", "profiler", "assets", "tests",
    "json", "queue", "signal", "random", "site", "sitecustomize", "usercustomize", "encodings",
    "numba", "numpy", "torch", "yaml", "llvmlite", "msgspec", "kaldifst", "soundfile", "psutil", "PySide6",
)  # fmt: skip


def plant(folder: Path) -> Path:
    """Make `folder` such a one; returns where the marks go."""
    folder.mkdir()
    marks = folder.parent / f"{folder.name}-marks"
    marks.mkdir()
    for name in NAMES:
        mark = str(marks / name)
        (folder / f"{name}.py").write_text(f"open({mark!r}, 'w').close()\nraise SystemExit('code of a stranger ran')\n")
    cache = str(marks / "cache")
    (folder / ".numba_config.yaml").write_text(f"disable_jit: 1\ncache_dir: {cache}\n")
    return marks


def ran(marks: Path) -> list[str]:
    return sorted(mark.name for mark in marks.iterdir())
