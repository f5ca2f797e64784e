"""Measure the tables of docs/measurements.md again.

    python -m tests.bench.measurements                      every table that takes less than two minutes
    python -m tests.bench.measurements --only search dnn    these, however long they take
    python -m tests.bench.measurements --list               what there is, its command and the most that it takes
    python -m tests.bench.measurements --out build/page.md  leave the page as it is and write the new one there

A table stands between `<!-- measured: NAME -->` and `<!-- end -->`, with its command, machine, load and date; text
between the tables is written by hand. Where data is missing or a command fails, one sentence says so, the table stays
as it was, and the end is 1. Use the machine for nothing else meanwhile: the load before stands with each table.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from profiler.errors import BadInput
from profiler.files.outputs import writing
from profiler.machine.describe import describe
from profiler.process.children import ROOT
from tests.bench import _data, _entries_instrument, _entries_recogniser
from tests.bench._measured import Entry, measured, names_in, places, replaced
from tests.bench._rounds import command_line

PAGE = ROOT / "docs" / "measurements.md"
ENTRIES: tuple[Entry, ...] = (*_entries_recogniser.ENTRIES, *_entries_instrument.ENTRIES)
"""In the order of the page."""


def chosen(entries: Sequence[Entry], only: Sequence[str]) -> list[Entry]:
    """The entries named, or else all that are quick; BadInput for a name that there is not."""
    names = {entry.name for entry in entries}
    for name in only:
        if name not in names:
            raise BadInput(f"--only takes {', '.join(sorted(names))}, not {name!r}.")
    return [entry for entry in entries if (entry.name in only if only else entry.quick)]


def measure(entries: Iterable[Entry], known: Iterable[str], page: Path, out: Path) -> list[str]:
    """Measure `entries` one after the other and write each into the page as soon as it is there.

    Returns the names of those that could not be measured; what stands in the page of them is left. `known`: every
    name that the page may have.
    """
    names, failed = set(known), []
    places(_read(page), names)
    machine, latest = describe(), page
    with tempfile.TemporaryDirectory(prefix="asrscope-measurements-") as folder:
        for entry in entries:
            _report(f"{entry.name}: {' · '.join(entry.commands)}")
            before = _processor_s()
            try:
                meant = names_in(Path(folder), _data.HUMAN, _data.synthetic_corpus, entry)
                table = measured(entry, meant, machine)
                # Read only now: a person may have written in it meanwhile.
                text = replaced(_read(latest), entry.name, table, names)
            except BadInput as error:
                _report(f"{entry.name} is left as it was: {error}")
                failed.append(entry.name)
                continue
            with writing(out, "the page") as draft:
                draft.write_bytes(text.encode("utf-8"))
            latest = out
            _report(f"{entry.name}: {_processor_s() - before:.0f} s of processor time")
    return failed


def _processor_s() -> float:
    """Processor time of all children that have ended, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _read(page: Path) -> str:
    return page.read_bytes().decode("utf-8")


def _report(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def main(arguments: list[str] | None = None) -> int:
    """Measure, or list; 1 where anything could not be measured, 2 where the question or the page is wrong."""
    parser = command_line("measurements", __doc__)
    parser.add_argument("--only", metavar="NAME", nargs="+", action="extend", default=[])
    parser.add_argument("--list", action="store_true", help="print what there is")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the page there")
    given = parser.parse_args(arguments)
    if given.list:
        for entry in ENTRIES:
            when = "" if entry.quick else "  (only with --only)"
            print(f"{entry.name:16} up to {entry.upto_s:.0f} s{when}")
            for command in entry.commands:
                print(f"    {command}")
        return 0
    try:
        wanted = chosen(ENTRIES, given.only)
        failed = measure(wanted, [entry.name for entry in ENTRIES], PAGE, given.out or PAGE)
    except BadInput as error:
        _report(str(error))
        return 2
    except KeyboardInterrupt:
        _report("Stopped; what was measured before stands in the page.")
        return 130
    left = [entry.name for entry in ENTRIES if not given.only and not entry.quick]
    if left:
        _report(f"Not measured, for they take over two minutes (--only NAME): {', '.join(left)}.")
    if failed:
        _report(f"Left as they were: {', '.join(failed)}.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
