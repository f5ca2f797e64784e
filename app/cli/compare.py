"""Compare two sessions, or the two arms of an A/B session, stage by stage.

    asrscope compare before.asrs after.asrs
    asrscope compare ab.asrs
    asrscope compare ab.asrs --json
    asrscope compare main.asrs branch.asrs --fail-if slower

A ratio is time of B / time of A, with its 95 % interval. Verdicts: A faster, B faster, no difference
(the interval is within 0.98…1.02) or undecided; those of stages are adjusted for multiple comparisons.
With --fail-if slower the exit status is 3 where B is decidedly slower than A, as a whole.

The JSON object has, besides what docs and scripts know of it,

    words         of how many utterances the recognised words differ, and the 100 worst: id, reference, words and errors
                  of A and B
    frame_times   of whole frames and of each stage: mean, percentiles and histogram of ms per frame of A and B
    roofline      of each stage in A and in B: operations per byte, operations per second, and its roofs
"""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

import msgspec

from app.cli import _output
from app.model import report_lines
from app.model.document import Document, Notes, Part, RatioRow, Ratios, Section, Table, interval, joined, number
from app.model.report import Tree, fields
from app.model.report import words as error_rates
from pipelines.audio.word_errors import rate_name
from pipelines.config import value_text
from profiler.plain import counted

if TYPE_CHECKING:
    from profiler.analysis.comparison.compare import StageRatio
    from profiler.session.reader import Session

SLOWER = 3  # Exit status of `--fail-if slower` where B is decidedly slower
FLOOR_FILE = "aa-floor.json"  # In the cache: differences of one configuration by `asrscope bench ab_validation`


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="a session file (.asrs); alone, an A/B session")
    parser.add_argument("b", metavar="B", nargs="?", help="the session to compare it with")
    help = f"exit with status {SLOWER} if B is decidedly slower than A"
    parser.add_argument("--fail-if", choices=("slower",), help=help)
    _output.report_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    from profiler.analysis.comparison.compare import A_FASTER
    from profiler.session.reader import Session

    with ExitStack() as stack:
        a = stack.enter_context(Session.open(arguments.a))
        b = stack.enter_context(Session.open(arguments.b)) if arguments.b else None
        found = report(a, b, frames=arguments.json)
    _output.print_report(found, arguments, document)
    slower = found["overall"]["verdict"] == A_FASTER
    return SLOWER if arguments.fail_if == "slower" and slower else 0


def report(a: Session, b: Session | None = None, *, frames: bool = False) -> Tree:
    """The JSON object of `compare`; `frames`: with the distributions of the time per frame, and the rooflines."""
    from app.model.compared import differing_words, frame_times
    from app.model.configurations import differing
    from app.views.roofline_model import arm_points
    from pipelines.audio.word_errors import transcribed, word_errors
    from pipelines.config import flatten
    from pipelines.config.fitting import named_now
    from profiler.analysis.comparison.compare import compare

    compared = compare(a, b, measured_floor(a))
    sides = {"a": compared.a, "b": compared.b}
    errors = {"a": word_errors(compared.decoded_a), "b": word_errors(compared.decoded_b)}
    in_a, in_b = (named_now(flatten(arm.config)) for arm in sides.values())
    tree: Tree = {
        "schema": 1,
        "a": str(a.path),
        "b": str(compared.b.session.path),
        "warnings": list(compared.warnings),
        "overall": {
            **_row(compared.overall),
            "rtf_a": compared.overall.a_s / compared.audio_s,
            "rtf_b": compared.overall.b_s / compared.audio_s,
            "total_ratio": compared.total_ratio,
        },
        "stages": [_row(stage) | {"group": stage.group} for stage in compared.stages],
        "only_a": dict(compared.only_a),
        "only_b": dict(compared.only_b),
        "wer": {side: count.rate for side, count in errors.items()},
        "cer": {side: error_rates(count)["cer"] for side, count in errors.items()},
        "wer_errors": {side: count.errors for side, count in errors.items()},
        "wer_words": {side: count.words for side, count in errors.items()},
        "transcribed": transcribed(compared.decoded_a)._asdict(),
        **fields(compared, "floor", "interleaved", "repeats", "audio_s"),
        "warm_up": dict(zip("ab", compared.warm_up, strict=True)),
        "utterances": {
            "matched": len(compared.matched),
            "only_a": list(compared.unmatched_a),
            "only_b": list(compared.unmatched_b),
        },
        "differences": {key: [in_a.get(key), in_b.get(key)] for key in sorted(differing(in_a, in_b))},
        "words": differing_words(compared),
    }
    if frames:
        tree["frame_times"] = msgspec.to_builtins(frame_times(compared))
        tree["roofline"] = {side: [asdict(point) for point in arm_points(arm)] for side, arm in sides.items()}
    return tree


def _row(row: StageRatio) -> Tree:
    return fields(row.ratio, "ratio", "ci95", "p") | fields(row, "name", "p_adjusted", "verdict", "a_s", "b_s")


def measured_floor(session: Session) -> float | None:
    """The A/A floor that the validation measured, if it ran on the machine of this session."""
    from profiler.files.paths import cache_dir

    try:
        stored = json.loads((cache_dir() / FLOOR_FILE).read_text(encoding="utf-8"))
        machine = session.meta.get("machine") or {}
        same = all(stored["machine"][key] == machine.get(key) for key in ("host", "cpu"))
        return float(stored["floor"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def document(tree: Tree) -> Document:
    """What differs, what it does to the time of each stage and to the words, and how sure that is."""
    overall, wer, words = tree["overall"], tree["wer"], tree["words"]
    differences = [f"{key}: {_value(a)} in A, {_value(b)} in B" for key, (a, b) in tree["differences"].items()]
    of = counted(words["of"], "utterance", "utterances")
    warnings = list(tree["warnings"])
    if words["differ"]:
        warnings.append(f"The recognised words differ in {words['differ']} of {of}.")
    parts: list[Part] = [_summary(tree)]
    if tree["floor"] is not None:
        parts.append(f"One configuration differs from itself by at most ±{tree['floor']:.1%} here.")
    if wer["a"] is not None and wer["b"] is not None:
        name = rate_name(wer["a"], tree["cer"]["a"])
        a, b = (f"{wer[s]:.1%} in {s.upper()} ({counted(tree['wer_errors'][s], 'error', 'errors')})" for s in "ab")
        parts.append(f"{name} {a}, {b}{report_lines.transcribed(tree)}.")
    rows = [("whole run", overall), *((row["name"], row) for row in tree["stages"])]
    ratios = [RatioRow(name, row["ratio"], row["ci95"], row["verdict"]) for name, row in rows]
    parts += [Notes(warnings), Section("Stages"), Ratios("Time of B over time of A", ratios, _summary(tree))]
    parts += [_stages(tree), Section("Words")]
    listed = words["utterances"]
    if not words["differ"]:
        parts.append(f"The recognised words are the same in A and B ({of}).")
    elif len(listed) < words["differ"]:
        parts.append(
            f"The recognised words differ in {words['differ']} of {of}; the {len(listed)} worst are listed, "
            f"{words['differ'] - len(listed)} are left out."
        )
    keys = ("id", "errors_a", "errors_b", "reference", "a", "b")
    cells = [[row[key] if "errors" in key else row[key] or "–" for key in keys] for row in listed]
    headers = ("utterance", "errors A", "errors B", "reference", "A", "B")
    parts.append(Table("Utterances whose words differ, the worst first", headers, cells, (3, 4, 5), aside=True))
    what = f"A and B of {tree['a']}" if tree["a"] == tree["b"] else f"A: {tree['a']} · B: {tree['b']}"
    return Document(joined(what, *(differences or ["the same settings"])), parts)


def _value(value: object) -> str:
    return "unknown" if value is None else value_text(value)


def _stages(tree: Tree) -> Table:
    headers = ("stage", "A", "B", "B / A", "95 % interval", "p (adjusted)", "verdict")
    rows = [
        (
            row["name"],
            f"{row['a_s']:.3f} s",
            f"{row['b_s']:.3f} s",
            f"{row['ratio']:.3f}",
            interval(row["ci95"]),
            number(row["p_adjusted"], ".4f"),
            row["verdict"],
        )
        for row in tree["stages"]
    ]
    for side in "ab":
        for name, seconds in tree[f"only_{side}"].items():
            times = (f"{seconds:.3f} s" if arm == side else "–" for arm in "ab")
            rows.append((name, *times, "–", "–", "–", f"only in {side.upper()}"))
    return Table("Stages of A and B", headers, rows)


def _summary(tree: Tree) -> str:
    overall = tree["overall"]
    between = "no interval" if overall["ci95"] is None else interval(overall["ci95"])
    how = "in turns" if tree["interleaved"] else "one after the other"
    utterances = counted(tree["utterances"]["matched"], "utterance", "utterances")
    return (
        f"{overall['verdict']}: B takes {overall['ratio']:.3f} ({between}) of A's time "
        f"(RTF {overall['rtf_a']:.4f} and {overall['rtf_b']:.4f}), over "
        f"{counted(tree['repeats'], 'repeat', 'repeats')} {how}, {utterances}, {tree['audio_s']:.1f} s of audio."
    )
