"""The report of a session (`app.model.report`) as text: what `run` and `show` print."""

from __future__ import annotations

from collections import Counter

from app.cli import _output
from app.model import report_lines
from app.model.report import Tree
from app.model.report_lines import number


def as_text(tree: Tree) -> str:
    """The report as text."""
    lines = report_lines.headline(tree)
    # What is decoded again and again, with the same words, is one line.
    results = Counter((each["id"], report_lines.hypothesis(each)) for each in tree["utterances"])
    for (name, words), times in results.items():
        again = f"  (×{times})" if times > 1 else ""
        lines.append(f"  {name:24} {words}{again}")
    lines += _apart([f"note: {note}" for note in report_lines.notes(tree)])
    if tree["categories"]:
        lines += ["", f"{'category':28} {'time':>10} {'share':>7}"]
        lines += [
            f"{row.name:28} {row.seconds:8.3f} s {number(row.share, '.1%'):>7}" for row in report_lines.categories(tree)
        ]
    if tree["stages"]:
        lines += ["", f"{'stage':28} {'time':>10} {'share':>7} {'calls':>8}  verdict · evidence"]
        for row in tree["stages"]:
            lines.append(
                f"{row['name']:28} {row['time_s']:8.3f} s {number(row['share'], '.1%'):>7} {row['calls']:8d}  "
                f"{report_lines.verdict(row)}"
            )
            said = report_lines.parts(row["parts"], row["parts_low"], row["parts_high"])
            lines.append(f"  {said or row['sentence']}")
            if said and row["too_close"]:
                lines.append(f"  {row['too_close']}")
        lines += _apart(report_lines.grades(tree))
        lines += _apart(report_lines.parts_of_groups(tree))
        lines += report_lines.defects(tree)
    if rows := report_lines.operators(tree):
        lines += ["", *(f"{kind:28} {n:>6} {ms:>9} {g:>9}" for kind, n, ms, g in (report_lines.OPERATORS, *rows))]
    lines += _counter_lines(tree)
    lines += report_lines.transfers(tree)
    for section in (report_lines.drift, report_lines.recorder):
        lines += _apart(section(tree))

    return _output.page(lines)


def _apart(lines: list[str]) -> list[str]:
    return ["", *lines] if lines else []


def _counter_lines(tree: Tree) -> list[str]:
    about = tree.get("counters")
    if not about:
        return []
    names = about["read"]
    if not names:
        return ["", "counters: none can be read here; `asrscope doctor` says why"]
    lines = ["", f"{'counted per stage':28}" + "".join(f" {name:>17}" for name in names)]
    for row in tree["stages"]:
        if row["counters"] is not None:
            values = [f" {number(row['counters'].get(name), '17,d')}" for name in names]
            lines.append(f"{row['name']:28}{''.join(values)}  {row['counters_evidence']}")
    cost = number(about["ns_per_reading"], ".0f")
    lines.append(f"a reading costs {cost} ns; A: counted, D: shared among stages of the same call")
    return lines
