"""Measure the tables of docs/measurements.md again.

    python -m tests.bench.measurements                      every table that takes less than two minutes
    python -m tests.bench.measurements --only search dnn    these, however long they take
    python -m tests.bench.measurements --list               what there is, its command and the most that it takes
    python -m tests.bench.measurements --out build/page.md  leave the page as it is and write the new one there

A table stands between `<!-- measured: NAME -->` and `<!-- end -->`, with its command, machine, load and date. Where
data is missing or a command fails, one sentence says so, the table stays as it was, and the end is 1. Use the machine
for nothing else meanwhile.
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from profiler.errors import BadInput
from profiler.files.outputs import writing
from profiler.machine.describe import describe
from profiler.process.children import ROOT
from tests.bench import corpus
from tests.bench._rounds import command_line, markdown, printed

PAGE = ROOT / "docs" / "measurements.md"
QUICK_S = 120.0  # Entries that may take longer are measured only by name
PLACE = re.compile(r"^<!-- measured: ([a-z0-9-]+) -->\n(.*?)^<!-- end -->\n", re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"^<!-- (?:measured|end)", re.MULTILINE)


class Entry(NamedTuple):
    """One place of the page: its name in the markers, and the commands that print its figures as JSON. `tables`: for
    each table where its rows lie in the JSON, then its columns; both are keys, with dots between those of objects in
    objects. "" is the object itself; without columns every value has a row; objects by name have the name as first
    column. `upto_s`: seconds that the commands take together where nothing else runs. `needs` raises BadInput where
    data is missing. `labels`: what the rows of each command begin with."""

    name: str
    commands: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...]
    upto_s: float
    needs: Callable[[], object] = lambda: None
    labels: tuple[str, ...] = ()


RUN, BENCH, MODULE = "asrscope run --preset", "asrscope bench", "python -m tests.bench"
ON_SPEECH = "--audio SPEECH --transcripts SPEECH/transcripts.tsv"
ON_CORPUS = "--audio CORPUS --transcripts CORPUS/transcripts.tsv"
SOME = ("librivox-0870", "librivox-0880", "librivox-0890", "goforward", "digits-2934z")
SOME_SPEECH = " ".join(f"SPEECH/{name}.flac" for name in SOME)
EVALUATE = "python -m pipelines.training evaluate large base small small-hard low-rank sparse sparse-blocks multi-frame"
MODELS = ("gmm", "gmm-continuous", "gmm-single-stream")
PRESETS = ("gmm-quick", "gmm", "dnn")
HUMAN, CORPUS = corpus.human_speech, corpus.synthetic_corpus


def _columns(rows: str, columns: str) -> tuple[str, ...]:
    return rows, *columns.split()


ERRORS = ("wer_errors", "wer_words", "wer")
DECODE = (_columns("rows", "vocabulary decoder rtf ratio wer_errors wer"),)
SAVING = "selection over dense, time"
GMM = (
    _columns("rows", "us_per_frame what of_pocketsphinx of_dense"),
    ("agreement", SAVING, f"{SAVING}, least and most"),
    ("agreement", "words", "word error rate, dense", "word error rate, selected", "points of WER lost"),
)
SEARCH = "vocabulary beam max_active ratio ratio_min ratio_max rtf peer_rtf same_words cost_difference"
CTC = (
    _columns("rows", "graph states arcs ratio ratio_min ratio_max rtf peer_rtf"),
    _columns("rows", "graph utterances same_words same_cost same_units cost_difference"),
    _columns("rows", "topology states arcs blank_skipping searched errors words rtf time_share"),
)
DNN = (_columns("rows", "batch net what us_per_frame"), _columns("agreement.wanted", "wanted found holds"))
SHARES = "configuration block scoring search widest widest_stage over_explained undecided"
ATTRIBUTED = f"{SHARES} changing without_stage replays added"
PREDICTED = "preset change predicted measured ci95 difference differences worst_stage"
SOAK = "process memory_mb_per_minute memory_mb_last files_more threads_more"
FIRST = ("the first, with nothing in the cache", "the second")
ENTRIES: tuple[Entry, ...] = (
    Entry("human", (f"{RUN} gmm {ON_SPEECH} --out SESSION --json",), (("", *ERRORS, "audio_s", "rtf"),), 30, HUMAN),
    Entry(
        "first-run",
        (f"ASRSCOPE_CACHE=EMPTY {RUN} gmm --out SESSION --json",) * 2,
        (("", "setup_s"),),
        110,
        labels=FIRST,
    ),
    Entry(
        "models",
        tuple(f"{RUN} {name} {ON_CORPUS} --out SESSION --json" for name in MODELS),
        (("", "preset", *ERRORS, "rtf"),),
        200,
        CORPUS,
    ),
    Entry("decode-human", (f"{BENCH} decode --repeat 1 {ON_SPEECH} --json",), DECODE, 200, HUMAN),
    Entry("decode", (f"{BENCH} decode --repeat 1 {ON_CORPUS} --json",), DECODE, 400, CORPUS),
    Entry("gmm", (f"{BENCH} gmm --repeat 5 --json",), GMM, 400, CORPUS),
    Entry(
        "graphs",
        (f"{BENCH} graphs --json",),
        (_columns("rows", "graph states arcs cpu_s peak_gb load_s file_mb"),),
        500,
    ),
    Entry(
        "search", (f"{BENCH} search --repeat 3 --audio {SOME_SPEECH} --json",), (_columns("rows", SEARCH),), 40, HUMAN
    ),
    Entry("ctc", (f"{BENCH} ctc --repeat 2 --json",), CTC, 600, HUMAN),
    Entry(
        "nets",
        tuple(f"{EVALUATE} {speech} --json" for speech in (ON_CORPUS, ON_SPEECH)),
        (_columns("nets", "net mb frames errors words wer"),),
        900,
        CORPUS,
    ),
    Entry("dnn", (f"{BENCH} dnn --json",), DNN, 110, HUMAN),
    Entry("hour", (f"{MODULE}.session hour",), (("",),), 40, labels=("block 16", "block 1")),
    Entry("memory", (f"{MODULE}.memory_use --hours 2",), (("growth_mb",),), 900),
    Entry(
        "capacity",
        tuple(f"asrscope capacity --preset {name} --out build/capacity/{name} --json" for name in PRESETS),
        (_columns("", "capacity capacity_range why"),),
        4200,
        labels=PRESETS,
    ),
    Entry("explain", (f"{MODULE}.attribution --repeat 3",), (_columns("rows", ATTRIBUTED),), 1500, HUMAN),
    Entry(
        "planted-causes",
        (f"{MODULE}.planted_causes --tries 10",),
        (_columns("causes", "stage right tries verdicts share"),),
        600,
        HUMAN,
    ),
    Entry("whatif", (f"{MODULE}.whatif_check --repeat 3",), (_columns("rows", PREDICTED),), 1200, HUMAN),
    Entry("desk", (f"{BENCH} desk --json",), (("figures",),), 900),
    Entry("soak", (f"{BENCH} soak --minutes 13 --json",), (_columns("rows", SOAK),), 1000),
    Entry(
        "overhead",
        (f"{BENCH} overhead --json",),
        (_columns("rows", "measure block limit median p25 p75 ci95_low ci95_high"),),
        300,
    ),
    Entry(
        "ab-validation",
        (f"{MODULE}.ab_validation --aa 200 --planted 50",),
        (("agreement",), _columns("rows", "what q05 median q95")),
        2400,
    ),
    Entry("constants", (f"{MODULE}.constants",), (_columns("rows", "where what stands now unit"),), 60, HUMAN),
)
"""In the order of the page."""


def table(trees: Sequence[Any], labels: Sequence[str], path: str, *columns: str) -> str:
    """One table of an entry, see there, of what its commands printed; in Markdown. LookupError where it has no rows."""
    found = [_at(tree, path) for tree in trees]
    if not columns:
        there = [tree for tree in found if tree is not None]
        keys = dict.fromkeys(key for tree in there for key in tree)
        head = ["figure", *(labels or ["value"] * len(there))]
        return markdown(head, [[key, *(_figure(tree.get(key)) for tree in there)] for key in keys])
    rows = []
    for label, tree in zip(labels or [""] * len(found), found, strict=True):
        named = isinstance(tree, dict) and all(isinstance(row, dict) for row in tree.values())
        for name, row in tree.items() if named else [("", one) for one in (tree if isinstance(tree, list) else [tree])]:
            if _at(row, columns[0]) is not None:
                rows.append([*filter(None, (label, name)), *(_figure(_at(row, column)) for column in columns)])
    before = [""] * (len(rows[0]) - len(columns))
    return markdown([*before, *(column.replace("_", " ").replace(".", " ") for column in columns)], rows)


def _at(tree: Any, path: str) -> Any:
    """The value at a path of keys, None where there is none; a key may have dots itself."""
    if not path or tree is None:
        return tree
    if path in tree:
        return tree[path]
    key, _, rest = path.partition(".")
    return _at(tree[key], rest) if rest and key in tree else None


def _figure(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_figure, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_figure(one)}" for key, one in value.items())
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def places(page: str, known: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Where the tables of each name lie in `page`; BadInput for a marker that is no pair, is there twice or unknown."""
    found = {match[1]: match.span(2) for match in PLACE.finditer(page)}
    if len(MARKER.findall(page)) != 2 * len(found) or not set(found) <= set(known):
        raise BadInput("Markers of the page are no pairs, are there twice, or name what nothing measures.")
    return found


def replaced(page: str, name: str, text: str, known: Iterable[str]) -> str:
    """`page` with `text` in the place of `name`; BadInput where it has none."""
    if (place := places(page, known).get(name)) is None:
        raise BadInput(f"The page has no place for {name!r}: <!-- measured: {name} -->.")
    return page[: place[0]] + text + page[place[1] :]


def measured(entry: Entry, folder: Path) -> str:
    """Run the commands of `entry` and return the text between its markers. BadInput where data is missing, a command
    fails, or prints other figures than the tables want."""
    entry.needs()
    names = {"SPEECH": corpus.HUMAN, "SESSION": folder / f"{entry.name}.asrs", "EMPTY": folder / entry.name}
    if "CORPUS" in " ".join(entry.commands):
        names["CORPUS"] = corpus.synthetic_corpus()
    load, day, machine = os.getloadavg()[0], time.strftime("%Y-%m-%d"), describe()
    trees = [tree for command in entry.commands for tree in printed(command, names)]
    vectors = f" ({', '.join(machine['vectors'])})" if machine.get("vectors") else ""
    where = (
        f"{machine.get('cpu')}{' VM' if machine.get('virtualised') else ''}{vectors}, "
        f"{machine.get('cores', {}).get('usable')} cores · load {load:.1f} before, {os.getloadavg()[0]:.1f} after"
        f" · {day}"
    )
    commands = "".join(f"- `{command}`\n" for command in entry.commands)
    try:
        tables = "\n".join(table(trees, entry.labels, *each) for each in entry.tables)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise BadInput(f"What its commands print has no such figures: {type(error).__name__} {error}") from error
    return f"{commands}\n{where}\n\n{tables}"


def measure(entries: Iterable[Entry], out: Path) -> list[str]:
    """Measure `entries` one after the other and write each into `out` as soon as it is there: the names of the others.
    BadInput where the page has markers that are wrong."""
    names, failed, latest = [entry.name for entry in ENTRIES], [], PAGE
    places(_read(PAGE), names)
    with tempfile.TemporaryDirectory(prefix="asrscope-measurements-") as folder:
        for entry in entries:
            _report(f"{entry.name}: {' · '.join(entry.commands)}")
            try:
                text = measured(entry, Path(folder))
                # Read only now: a person may have written in it meanwhile.
                page = replaced(_read(latest), entry.name, text, names)
            except BadInput as error:
                _report(f"{entry.name} is left as it was: {error}")
                failed.append(entry.name)
                continue
            with writing(out, "the page") as draft:
                draft.write_bytes(page.encode("utf-8"))
            latest = out
    return failed


def _read(page: Path) -> str:
    return page.read_bytes().decode("utf-8")


def _report(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Measure, or list; 1 where anything could not be measured, 2 where the question or the page is wrong."""
    parser = command_line("measurements", __doc__)
    names = [entry.name for entry in ENTRIES]
    parser.add_argument("--only", choices=names, metavar="NAME", nargs="+", action="extend", default=[])
    parser.add_argument("--list", action="store_true", help="print what there is")
    parser.add_argument("--out", metavar="FILE", type=Path, default=PAGE, help="write the page there")
    given = parser.parse_args(arguments)
    slow = [entry.name for entry in ENTRIES if entry.upto_s > QUICK_S]
    if given.list:
        for entry in ENTRIES:
            print(f"{entry.name:16} up to {entry.upto_s:.0f} s{'  (only with --only)' * (entry.name in slow)}")
            print(*(f"    {command}" for command in entry.commands), sep="\n")
        return 0
    wanted = given.only or [name for name in names if name not in slow]
    try:
        failed = measure([entry for entry in ENTRIES if entry.name in wanted], given.out)
    except BadInput as error:
        _report(str(error))
        return 2
    except KeyboardInterrupt:
        _report("Stopped; what was measured before stands in the page.")
        return 130
    if slow and not given.only:
        _report(f"Not measured, for they take over two minutes (--only NAME): {', '.join(slow)}.")
    if failed:
        _report(f"Left as they were: {', '.join(failed)}.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
