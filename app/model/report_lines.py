"""What a report (`app.model.report`) says, in words and tables: for a terminal, and in an exported report. No Qt."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from app.model import latency, memory
from app.model.document import Document, Notes, Part, Section, Table, number
from app.model.report import Tree
from pipelines.audio.word_errors import ErrorCount
from pipelines.config import value_text
from profiler.analysis.categories import OTHER_PROGRAMS, PREEMPTED_FROM, THROTTLED
from profiler.plain import clock, counted, one_line, rtf_text

SHARES: Final = {  # What was done of all that there was, by its key in the report
    "senones_scored": "{:.1%} of the senones scored",
    "senones_asked": "{:.1%} of the senones active",
    "frames_copied": "{:.1%} of the frames copied",
}

OPERATORS: Final = ("operator of the net", "calls", "ms", "GFLOP")  # Columns of `operators`
LEAST: Final = 0.001  # Seconds, or a share: what would be rounded to nothing is said to be less


def document(tree: Tree) -> Document:
    """All of a report, with its utterances: what `run` and `show` print."""
    # What is decoded again and again, with the same words, is one row.
    results = Counter((row["id"], hypothesis(row)) for row in tree["utterances"])
    rows = [(name, f"{words}  (×{times})" if times > 1 else words) for (name, words), times in results.items()]
    utterances = Table("Utterances", ("utterance", "words"), rows)
    return Document("", [*headline(tree), utterances, Notes(notes(tree)), *tables(tree), *remarks(tree)])


def tables(tree: Tree) -> list[Part]:
    """Sections with the categories, the stages and what was counted of them, and the operators of a net."""
    found: list[Part] = []
    if rows := [(name, _time(s), _share(share)) for name, s, share in categories(tree) if s]:
        found += [Section("Categories"), Table("Categories", ("category", "time", "share"), rows)]
    if tree["stages"]:
        there = {row["evidence"] for row in tree["stages"]}
        graded = " · ".join(text for grade, text in GRADES.items() if grade in there)
        found += [Section("Stages"), _stages(tree), *([f"evidence: {graded}"] if graded else []), *_counters(tree)]
    if operations := operators(tree):
        found += [Section("Operators of the net"), Table("Operators of the net", OPERATORS, operations)]
    return found


def remarks(tree: Tree) -> list[str]:
    """What else was found: of groups, defects, copies, the roofs, the recorder."""
    groups = {group: parts(found) for group, found in (tree.get("parts") or {}).items()}
    defects = {row["name"]: row["defect"] for row in tree["stages"] if row["defect"]}
    return [
        *(f"all of {group}: {text}" for group, text in groups.items() if text),
        *(f"flagged as a defect of the tool: {name}. {defect}" for name, defect in defects.items()),
        *transfers(tree),
        *drift(tree),
        *recorder(tree),
    ]


def _stages(tree: Tree) -> Table:
    rows = [
        (
            row["name"],
            _time(row["time_s"]),
            _share(row["share"]),
            row["calls"],
            verdict(row),
            parts(row["parts"], row["parts_low"], row["parts_high"]),
            " ".join(filter(None, (row["sentence"], row["too_close"]))),
        )
        for row in tree["stages"]
    ]
    headers = ("stage", "time", "share", "calls", "verdict · evidence", "consists of", "why")
    return Table("Stages", headers, rows, (5, 6))


def _counters(tree: Tree) -> list[Part]:
    about = tree.get("counters")
    if not about:
        return []
    if not about["read"]:
        return ["counters: none can be read here; `asrscope doctor` says why"]
    names, counted = about["read"], [row for row in tree["stages"] if row["counters"] is not None]
    rows = [
        (row["name"], *(number(row["counters"].get(name), ",d") for name in names), row["counters_evidence"])
        for row in counted
    ]
    cost = f"a reading costs {number(about['ns_per_reading'], '.0f')} ns"
    table = Table("Counted per stage", ("counted per stage", *names, "evidence"), rows)
    return [table, f"{cost}; A: counted, D: shared among stages of the same call"]


def _time(seconds: float) -> str:
    return f"<{LEAST} s" if 0 < seconds < LEAST / 2 else f"{seconds:.3f} s"


def _share(share: float | None) -> str:
    return f"<{LEAST:.1%}" if share and share < LEAST / 2 else number(share, ".1%")


def operators(tree: Tree) -> list[tuple[str, ...]]:
    """Rows of the kinds of operators that take half a percent of a call of the net or more, the longest first."""
    every = tree.get("operators") or ()
    kinds = dict.fromkeys(row["kind"] for row in every)
    keys = ("ns", "calls", "gflop")
    sums = {kind: [sum(row[key] for row in every if row["kind"] == kind) for key in keys] for kind in kinds}
    least = 0.005 * sum(ns for ns, _, _ in sums.values())
    rows = sorted(((kind, found) for kind, found in sums.items() if found[0] >= least), key=lambda row: -row[1][0])
    return [(kind, f"{calls:,.0f}", f"{ns / 1e6:.2f}", f"{gflop:.3f}") for kind, (ns, calls, gflop) in rows]


def headline(tree: Tree) -> list[str]:
    """Time and word errors of the whole; those of each configuration, where there are several, are indented."""
    what = f"{tree['audio_s']:.1f} s of audio in {tree['wall_s']:.2f} s: RTF {rtf_text(tree['rtf'])}"
    if steps := tree.get("steps"):
        per_step = f"{1e3 * tree['wall_s'] / steps:.3g} ms per step"
        what = f"{counted(steps, 'step', 'steps')} in {tree['wall_s']:.2f} s: {per_step}"
    outside = {"set-up": tree["setup_s"], "waiting": tree["idle_s"]}
    if tree.get("stopped_s"):
        outside["stood still"] = tree["stopped_s"]
    excluded = ", ".join(f"{name} {number(seconds, '.1f')} s" for name, seconds in outside.items())
    every = "both" if len(outside) == 2 else "all"
    lines = [*selection(tree), f"{what} ({excluded}, {every} excluded)", *problem(tree)]
    if tree["wer"] is not None:
        lines.append(f"{_rate(tree).name} {_errors(tree)}{transcribed(tree)}")
    configurations = tree.get("configurations") or ()
    for row in configurations if len(configurations) > 1 else ():
        if row["wer"] is not None:
            changed = ", ".join(f"{key} = {value_text(value)}" for key, value in row["set"].items())
            lines.append(f"  {_errors(row)} with {changed or 'the settings at the start'}")
    if tree.get("latency"):
        lines.append(f"{latency.texts(tree['latency'])[0]} (first frame of a block, to its scores)")
    lines += memory.lines(tree)
    lines += latency_of_words(tree)
    done = [SHARES[key].format(share) for key, share in (tree.get("shares") or {}).items() if share is not None]
    if done:
        lines.append(", ".join(done))
    return lines


def selection(tree: Tree) -> list[str]:
    """What the report is of, where something is selected."""
    found = tree.get("selection")
    if found is None:
        return []
    names = one_line(", ".join(found["select"]))
    if found["first_s"] is None:
        return [f"stages: {names}; all else is of the whole run"]
    return [f"selection: {clock(found['first_s'], 2)} to {clock(found['last_s'], 2)} ({names})"]


def problem(tree: Tree) -> list[str]:
    return [f"the run failed: {one_line(str(tree['problem']), 1000)}"] if tree.get("problem") else []


OF_WORDS: Final = {"first_shown": "first shown", "stable": "stable", "time_to_final": "time to final"}  # By key


def latency_of_words(tree: Tree) -> list[str]:
    """Percentiles of a stream's latencies since the end of a word, and the largest part; nothing without a stream."""
    about = tree.get("latency_s")
    if not about or not about["words"]:
        return []
    known = [(title, about[key]) for key, title in OF_WORDS.items() if about[key]]
    said = [f"{title} {' / '.join(f'{1e3 * s:.0f}' for s in values.values())} ms" for title, values in known]
    return [
        f"latency of {counted(about['words'], 'word', 'words')}, p50 / p90 / p99: {', '.join(said)}; "
        f"{about['taken_back']:.0%} taken back",
        about["sentence"],
    ]


def transcribed(tree: Tree) -> str:
    """Of how many utterances the word errors are, where some have no transcript; to be put behind them."""
    found = tree["transcribed"]
    if found["utterances"] == found["of"]:
        return ""
    return f"; {found['utterances']} of {found['of']} utterances have a transcript"


def hypothesis(row: Tree) -> str:
    said = row["hypothesis"] or "(nothing)"
    return f"{said}  (no sentence of the grammar)" if row["complete"] is False else said


NAMED: Final = 3  # Utterances that a note names


def notes(tree: Tree) -> list[str]:
    """What was done to the sound, or left out of sound, model and texts; a note of several utterances is one line."""
    named: dict[str, dict[str, None]] = {}
    for row in tree["utterances"]:
        for note in row["notes"]:
            named.setdefault(note, {})[row["id"]] = None
    lines = list(tree["notes"])
    everyone = len({row["id"] for row in tree["utterances"]})
    for note, ids in named.items():
        who = ", ".join([*ids][:NAMED]) + (f" and {len(ids) - NAMED} more" if len(ids) > NAMED else "")
        if 1 < everyone == len(ids):
            who = f"all {everyone} utterances"
        lines.append(f"{who}: {note}")
    return lines


def categories(tree: Tree) -> list[tuple[str, float, float | None]]:
    """Name, seconds and share of the wall time (None without any) of the categories whose time is known."""
    from profiler.analysis.categories import CATEGORY_NAMES

    wall = tree["wall_s"]
    return [
        (CATEGORY_NAMES.get(name, name), seconds, seconds / wall if wall else None)
        for key, seconds in (tree["categories"] or {}).items()
        if seconds is not None and (name := key.removesuffix("_s"))
    ]


def verdict(row: Tree) -> str:
    """Verdict and grade of a stage, and how much of its time was not its own: mixed · B · 53 % preempted."""
    said = [row["verdict"] or "–", row["evidence"]]
    parts = row["parts"] or {}
    for name, how in ((OTHER_PROGRAMS, "preempted"), (THROTTLED, "throttled")):
        taken = parts.get(f"{name}_s", 0.0) / (sum(parts.values()) or 1.0)
        if taken >= PREEMPTED_FROM:
            said.append(f"{100 * taken:.0f} % {how}")
    return " · ".join(filter(None, said))


def parts(
    likely: Mapping[str, float] | None, low: Mapping[str, float] | None = None, high: Mapping[str, float] | None = None
) -> str:
    """What a stage's time consists of, the largest part first, with intervals where they are wide; else empty."""
    from profiler.analysis.categories import PART_NAMES
    from profiler.analysis.verdict import TOLD_FROM

    time = sum(likely.values()) if likely else 0.0
    if not likely or not time:
        return ""
    said = []
    for key in sorted(likely, key=lambda key: -likely[key]):
        share = likely[key] / time
        least, most = (low[key] / time, high[key] / time) if low and high else (share, share)
        between = f" ({least:.0%} to {most:.0%})" if most - least >= TOLD_FROM else ""
        if share >= TOLD_FROM:
            said.append(f"{PART_NAMES[key.removesuffix('_s')]} {share:.0%}{between}")
    return ", ".join(said)


GRADES: Final = {  # What a grade of evidence means
    "A": "A counted by the hardware",
    "B": "B measured, with hot replays",
    "C": "C time measured, parts by the law alone",
    "D": "D an estimate: a roof is missing",
    "–": "– without a model",
}


def transfers(tree: Tree) -> list[str]:
    """What was copied between host and device."""
    return [
        f"{row['stage']} ({row['lane']}): {row['bytes'] / 1e6:.1f} MB in "
        f"{counted(row['copies'], 'copy', 'copies')}, "
        f"{number(row['bytes_per_s'] and row['bytes_per_s'] / 1e9, '.2f')} GB/s, "
        f"{number(row['overlapped'], '.0%')} of the time overlapped by other work"
        + (f", {row['of_roof']:.0%} of what such copies reach here" if row["of_roof"] else "")
        for row in tree.get("transfers", [])
    ]


def drift(tree: Tree) -> list[str]:
    """How the roofs measured again at the end of the run compare with those used for its verdicts."""
    from profiler.machine.roofs.table import drift_text, drift_warning

    changes = tree.get("drift")
    if not changes:
        return []
    warning = drift_warning(changes)
    lines = [f"roofs since their calibration: {drift_text(changes)}"]
    return [*lines, f"warning: {warning}"] if warning else lines


def recorder(tree: Tree) -> list[str]:
    """What recording cost, and what it lost."""
    from profiler.analysis.own_cost import RecorderCost

    if not tree["recorder"]:
        return []
    cost = RecorderCost(**tree["recorder"])
    return [
        f"recorder: {counted(cost.spans, 'span', 'spans')} at {number(cost.ns_per_span, '.0f')} ns, "
        f"{', '.join(cost.losses)}, {number(cost.perturbation, '.2%')} of the run"
    ]


def words_changed(words: int, errors: int, changed: int) -> str:
    """What a change does to the words: word errors without and with it, in `words` words of the transcripts."""
    if not words:
        return "No file with a transcript fits whole into the audio tried, so words are not compared."
    if changed == errors:
        what = f"as many as without the change ({errors / words:.1%})"
    else:
        what = f"{counted(errors, 'error', 'errors')} without the change ({errors / words:.1%})"
    return (
        f"{counted(changed, 'word error', 'word errors')} in {counted(words, 'word', 'words')} with the change, {what}."
    )


def _rate(tree: Tree) -> ErrorCount:
    of_characters = tree.get("cer_errors") or 0, tree.get("cer_characters") or 0
    return ErrorCount(tree["wer_errors"], tree["wer_words"], *of_characters)


def _errors(tree: Tree) -> str:
    count = _rate(tree)
    said = f"{tree['wer']:.1%}: {counted(count.errors, 'error', 'errors')} in {counted(count.words, *count.unit)}"
    if not count.characters:
        return said
    of = "the reference has" if count.name == "CER" else f"{count.characters} of them, where the reference has"
    return f"{said} ({of} no spaces between words)"
