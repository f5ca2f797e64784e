"""Ten thousand spoiled session files: no crash, no hang, no memory blow-up, one clear sentence.

    python -m tests.bench.fuzz --files 10000
    python -m tests.bench.fuzz --seed 4711 --keep /tmp/found

Every file goes through all that the program reads it for: open, refresh, every attribute, cost per frame,
breakdown, the views' models, the report, and all exports. Files are read in forked children under a limit of
memory, and a child that dies, hangs or grows is a finding with its seed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

# Imported here, so that children find everything loaded.
from app.cli._output import _finite
from app.cli._report import as_text, report
from app.views.breakdown_model import breakdown_model
from app.views.cost_model import cost_model
from app.views.words_model import words_model
from app.views.work_model import work_model
from profiler.analysis.breakdown import breakdown
from profiler.analysis.track import CostTrack
from profiler.export import chrome_trace, speedscope, table
from profiler.session.errors import SessionError
from profiler.session.reader import Session
from tests.bench import _mutate
from tests.bench._sessions import make_bases

BATCH: Final = 100
"""Files per child."""

TIME_LIMIT_S: Final = 20.0
"""Wall time per file; generous, since other programs may hold the processor."""

MEMORY_LIMIT: Final = 1 << 30
"""Bytes of address space beyond what the child starts with."""

GROWTH_LIMIT: Final = 500 << 20
"""Bytes that the resident size may rise by: 2^20 frames that are not there, at 400 bytes each for the arrays
of all views. No base file exceeds 1 MB."""

LONGEST_SENTENCE: Final = 320


@dataclass
class Result:
    """What came of the files: how many opened, the sentences of the others, what went wrong."""

    files: int = 0
    opened: int = 0
    followed: int = 0
    sentences: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    growth_bytes: int = 0


class Odd(Exception):
    """A SessionError that is not one clear sentence."""


def use(path: Path, folder: Path) -> str | None:
    """Do with a session all that the program does; None if it opened, else the sentence.

    Anything but SessionError goes up, and so does a sentence of bad form.
    """
    try:
        session = Session.open(path)
    except SessionError as error:
        return check_sentence(str(error), path)
    with session:
        try:
            session.refresh()
        except SessionError as error:
            return check_sentence(str(error), path)
        look(session, folder)
    return None


def look(session: Any, folder: Path) -> None:
    """Read every attribute of an open session, analyse, show and export it."""
    for name in dir(type(session)):
        if not name.startswith("_"):
            getattr(session, name)
    for name in session.sample_names:
        session.samples(name)
    session.wall_time(0)
    track = CostTrack()
    track.update(session)
    breakdown(session, track=track)
    breakdown(session, 3, 20, track=track)
    frames, seconds = track.n_frames, max(track.n_frames, 1) * 0.01
    cost_model(session, track, frames, (0.0, seconds), 300)
    words_model(session, track, frames, (0.0, seconds), 300)
    work_model(session, track, frames, (0.0, seconds), 300)
    breakdown_model(session, track, frames, None)
    tree = report(session)
    as_text(tree)
    json.dumps(_finite(tree), allow_nan=False)
    for module in (chrome_trace, speedscope):
        module.write(session, folder / "export")
        json.loads((folder / "export").read_bytes(), parse_constant=_no_constant)
    table.write(session, folder / "export")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def check_sentence(text: str, path: Path) -> str:
    """Return a sentence without its path; Odd if it is not one printable line of decent length."""
    shown = text.replace(str(path), "FILE")
    if "FILE" not in shown or not shown.isprintable() or len(shown) > LONGEST_SENTENCE:
        raise Odd(shown)
    return shown


def fuzz(
    seeds: Sequence[int],
    bases: Sequence[_mutate.Base],
    folder: Path,
    progress: Callable[[float], None] = lambda fraction: None,
    keep: Path | None = None,
) -> Result:
    """Spoil and read one file per seed, in children of BATCH files each."""
    result = Result()
    left = list(seeds)
    while left:
        batch, left = left[:BATCH], left[BATCH:]
        done = _batch(batch, bases, folder, result)
        left = batch[done:] + left
        progress(1 - len(left) / len(seeds))
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        for finding in result.findings:
            seed = int(finding.split()[1].rstrip(":"))
            path, _ = _mutate.spoil(seed, bases, folder)
            for name in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(f"{path}{name}", keep / f"{seed}.asrs{name}")
    return result


def _batch(
    seeds: Sequence[int], bases: Sequence[_mutate.Base], folder: Path, result: Result
) -> int:
    """Run one child; return how many files are dealt with; the rest goes to another child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(seeds, bases, folder, writing)
    os.close(writing)
    done, pending, hung = 0, b"", False
    while True:
        ready, _, _ = select.select([reading], [], [], TIME_LIMIT_S)
        if not ready:
            os.kill(child, signal.SIGKILL)
            hung = True
            result.findings.append(f"seed {seeds[done]}: no end after {TIME_LIMIT_S:.0f} s")
            break
        piece = os.read(reading, 65536)
        if not piece:
            break
        *lines, pending = (pending + piece).split(b"\n")
        for line in lines:
            _take(json.loads(line), result)
            done += 1
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if done < len(seeds) and status:
        if not hung:
            result.findings.append(f"seed {seeds[done]}: the reader died, status {status}")
        result.files += 1
        done += 1
    return done


def _take(line: dict[str, Any], result: Result) -> None:
    result.files += 1
    result.slowest_s = max(result.slowest_s, line["took_s"])
    result.growth_bytes = max(result.growth_bytes, line["growth"])
    if line["finding"]:
        result.findings.append(line["finding"])
    elif line["sentence"] is None:
        result.opened += 1
    else:
        result.sentences[line["sentence"]] += 1


def _child(seeds: Sequence[int], bases: Sequence[_mutate.Base], folder: Path, pipe: int) -> None:
    """Read the files of a batch and report each on `pipe`; never returns."""
    place = folder / f"child-{os.getpid()}"
    place.mkdir()
    with contextlib.suppress(BaseException):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_LIMIT, used + MEMORY_LIMIT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        start = _resident()
        for seed in seeds:
            line = _one(seed, bases, place)
            line["growth"] = max(
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - start, 0
            )
            if line["growth"] > GROWTH_LIMIT and not line["finding"]:
                line["finding"] = f"seed {seed}: grew by {line['growth'] >> 20} MB"
            os.write(pipe, json.dumps(line).encode() + b"\n")
            if line["growth"] > GROWTH_LIMIT:
                break
    shutil.rmtree(place, ignore_errors=True)
    os._exit(0)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _one(seed: int, bases: Sequence[_mutate.Base], place: Path) -> dict[str, Any]:
    path, what = _mutate.spoil(seed, bases, place)
    finding = sentence = None
    began = time.process_time()
    try:
        sentence = use(path, place)
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        finding = (
            f"seed {seed}: {type(error).__name__} {str(error)[:120]!r} at "
            f"{Path(where.filename).name}:{where.lineno} [{what}]"
        )
    return {"sentence": sentence, "finding": finding, "took_s": time.process_time() - began}


def followed(seeds: Sequence[int], bases: Sequence[_mutate.Base], folder: Path) -> Result:
    """Spoil live files under an open reader that goes on following them; findings in-process."""
    result = Result()
    live = [base for base in bases if base.wal]
    for seed in seeds:
        base = live[seed % len(live)]
        place = folder / "followed"
        place.mkdir(exist_ok=True)
        path, wal = place / "spoiled.asrs", place / "spoiled.asrs-wal"
        for name in ("-shm", "-journal"):
            (place / f"spoiled.asrs{name}").unlink(missing_ok=True)
        path.write_bytes(base.main)
        wal.write_bytes(base.wal)
        result.files += 1
        try:
            with Session.open(path) as session:
                _mutate.spoil(seed, [base], place)
                session._signature = None
                with contextlib.suppress(SessionError):
                    session.refresh()
                look(session, place)
            result.followed += 1
        except SessionError as error:
            result.sentences[check_sentence(str(error), path)] += 1
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            result.findings.append(
                f"seed {seed}: followed: {type(error).__name__} {str(error)[:120]!r} at "
                f"{Path(where.filename).name}:{where.lineno}"
            )
    return result


def run(
    paths: Sequence[str], transcripts: str | None, repeat: int, progress: Callable[..., None]
) -> dict[str, Any]:
    """`repeat` thousand files; the ratio is the share of files that ended as they should."""
    with tempfile.TemporaryDirectory(prefix="asrscope-fuzz-") as name:
        folder = Path(name)
        bases = [_mutate.Base(path) for path in make_bases(folder)]
        result = fuzz(range(1000 * repeat), bases, folder, lambda f: progress("spoiling", f))
    sound = 1 - len(result.findings) / result.files
    return {
        "peer": "nobody",
        "ratio": sound,
        "ratio_min": sound,
        "ratio_max": sound,
        "ratio_meaning": "share of spoiled files that opened or were refused in one sentence",
        "agreement": summary(result),
        "rows": [{"sentence": s, "files": n} for s, n in result.sentences.most_common(20)],
    }


def summary(result: Result) -> dict[str, Any]:
    """The figures of a run."""
    return {
        "files": result.files,
        "opened": result.opened,
        "refused": sum(result.sentences.values()),
        "different sentences": len(result.sentences),
        "findings": len(result.findings),
        "slowest file, CPU s": round(result.slowest_s, 3),
        "largest growth, MB": round(result.growth_bytes / 1e6, 1),
    }


def main() -> int:
    """Run as a program; exit status 1 when anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fuzz", description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--keep", type=Path, help="folder for the files of findings")
    given = parser.parse_args()
    seeds = (
        [given.seed] if given.seed is not None else range(given.first, given.first + given.files)
    )
    began = time.monotonic()

    def progress(fraction: float) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{fraction:4.0%}")

    with tempfile.TemporaryDirectory(prefix="asrscope-fuzz-") as name:
        folder = Path(name)
        bases = [_mutate.Base(path) for path in make_bases(folder)]
        result = fuzz(seeds, bases, folder, progress, given.keep)
    for sentence, count in result.sentences.most_common(12):
        print(f"{count:6d} {sentence}")
    for finding in result.findings:
        print(finding)
    print({**summary(result), "wall s": round(time.monotonic() - began, 1)})
    return bool(result.findings)


if __name__ == "__main__":
    sys.exit(main())
