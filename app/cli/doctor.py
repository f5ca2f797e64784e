"""Show what works on this machine, what does not, and why.

    asrscope doctor
    asrscope doctor --json
    asrscope doctor --empty-cache

First what the program needs, then the tiers of evidence: where its figures can come from here. Figures of an
absent tier stay blank in every report. Grades: A counted by hardware or kernel, B time measured.
"""

import argparse
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from app.cli import _output, _tiers
from app.cli._tiers import Tier
from app.cli.open import has_display
from profiler.plain import counted
from profiler.process import children


@dataclass(frozen=True)
class Check:
    """One thing that was tried. `works` is False if something optional is missing."""

    name: str
    works: bool
    detail: str
    needed: bool = True


def arguments(parser: argparse.ArgumentParser) -> None:
    help = "first empty the cache of search graphs, derived models, tables and roofs; they are rebuilt when needed"
    parser.add_argument("--empty-cache", action="store_true", help=help)
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Try everything and print the results; exit status 1 if something required does not work."""
    if arguments.empty_cache:
        from profiler.files import cache

        freed = cache.empty()
        print(f"The cache is empty: {_megabytes(freed)} freed.", file=sys.stderr)
    parts = [check for probe in PROBES for check in probe()]
    checks = [*map(_package, PACKAGES), *parts]
    evidence = _tiers.evidence()
    ready = all(c.works for c in checks if c.needed)
    if arguments.json:
        from profiler.machine.describe import describe

        # A part of the program is a tier too, although not evidence.
        tiers = [*evidence, *(Tier(c.name, c.works, None, c.detail) for c in parts)]
        found = [tier for tier in evidence if tier.name.startswith("accelerator")]
        usable = [tier for tier in found if tier.available]
        detail = "; ".join(tier.reason for tier in usable or found)
        checks.append(Check("accelerator", bool(usable), detail, needed=False))
        tree = {"schema": 1, "ready": ready, "machine": describe()}
        _output.print_json(tree | {"checks": [*map(asdict, checks)], "tiers": [*map(asdict, tiers)]})
        return 0 if ready else 1
    for check in checks:
        sign = "ok" if check.works else ("MISSING" if check.needed else "absent")
        print(f"{sign:8} {check.name:20} {check.detail}")
    print("\nWhere figures come from here:\n")
    for tier in evidence:
        sign = f"grade {tier.grade}" if tier.grade else ("here" if tier.available else "absent")
        print(f"{sign:8} {tier.name:30} {tier.reason}")
    print("\nEverything required is available." if ready else "\nSomething required is missing.")
    return 0 if ready else 1


PACKAGES: Final = ("numpy", "numba", "torch", "kaldifst", "pocketsphinx", "PySide6-Essentials")


def _package(name: str) -> Check:
    try:
        return Check(name, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Check(name, False, f"not installed; run: pip install {name}")


def _in_a_process(code: str) -> tuple[bool, str]:
    """Run `code` in a separate process, since a missing system library can end the process."""
    extra = {} if has_display() else {"QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        children.python("-c", code),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
        check=False,
        env=children.environment(extra),
    )
    works = done.returncode == 0
    return works, children.last_words(done.stdout if works else done.stderr, done.returncode)


def _window() -> list[Check]:
    works, detail = _in_a_process(
        "from PySide6.QtWidgets import QApplication; from PySide6.QtCore import qVersion\n"
        "QApplication([]); print('Qt', qVersion())"
    )
    display = has_display()
    about = "a window can be opened" if display else "none: only pictures and headless runs"
    return [Check("Qt", works, detail), Check("display", display, about, needed=False)]


def _model() -> list[Check]:
    from pipelines.models import sphinx
    from profiler.errors import BadInput

    try:
        folder = sphinx.default_directory()
        model = sphinx.load(folder)
    except (BadInput, OSError) as problem:
        return [Check("acoustic model", False, str(problem))]
    return [Check("acoustic model", True, f"{model.mdef.n_senones} senones in {folder}")]


def _optional(name: str, packages: tuple[str, ...], opens: str, missing: str = "") -> list[Check]:
    try:
        found = " and ".join(f"{package} {importlib.metadata.version(package)}" for package in packages)
    except importlib.metadata.PackageNotFoundError as absent:
        detail = missing or f"{absent.name} is not installed; {opens} need it: pip install {' '.join(packages)}"
        return [Check(name, False, detail, needed=False)]
    return [Check(name, True, f"{found}: {opens} can be opened", needed=False)]


def _onnx() -> list[Check]:
    return _optional("onnxruntime", ("onnx", "onnxruntime"), "nets from .onnx files")


def _kaldi() -> list[Check]:
    from pipelines.frontend.kaldi_parameters import MISSING, PACKAGE

    return _optional("kaldi", (PACKAGE,), "Kaldi models", MISSING)


def _ctc() -> list[Check]:
    from pipelines.models.ctc.opening import default_folder
    from pipelines.models.errors import ModelError

    try:
        default_folder()
    except ModelError as missing:
        return [Check("hama", False, str(missing), needed=False)]
    return [Check("hama", True, f"{importlib.metadata.version('hama')}: a net for model=ctc", needed=False)]


def _processors() -> list[Check]:
    from profiler.machine import cpu_limit
    from profiler.machine.describe import usable_cores

    usable, limits = usable_cores() or 1, cpu_limit.limits()
    detail = f"{counted(usable, 'core', 'cores')} can be used"
    if limits:
        detail += f"; the CPU limit is {cpu_limit.text()}, by {limits[0].folder}"
    return [Check("processors", True, detail, needed=False)]


def _folders() -> list[Check]:
    from profiler.files import cache, paths
    from profiler.process import kernel_cache

    def writable(name: str, find: Callable[[], Path], more: Callable[[], str] = str) -> Check:
        folder = None
        try:
            folder = find()
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as problem:
            why = f"{folder} cannot be written: {(problem.strerror or str(problem)).lower()}"
            return Check(name, False, str(problem) if folder is None else why)
        return Check(name, True, f"{folder}{more()}")

    def kept() -> str:
        found = cache.entries()
        size = _megabytes(sum(entry.bytes for entry in found))
        return f": {size} in {counted(len(found), 'file', 'files')}, at most {_megabytes(cache.LIMIT_BYTES)}"

    return [
        writable("cache folder", paths.cache_dir, kept),
        writable("compiled kernels", lambda: kernel_cache.place(os.environ.get("NUMBA_CACHE_DIR", ""))),
        writable("sessions folder", paths.sessions_dir),
    ]


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"


PROBES = (_processors, _window, _model, _onnx, _kaldi, _ctc, _folders)  # Of the program's parts
