"""Texts of the breakdown: verdicts, what a stage is, why a category is zero, the sum, what was before a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.charts.scale import milliseconds, percent
from app.model.figures import rtf_text
from app.model.report_lines import PREEMPTED_FROM
from app.views.breakdown_model import REASONS
from app.views.part_bars import part_text, rows_of
from profiler.analysis.categories import OTHER_PROGRAMS, PART_NAMES
from profiler.frames import FRAME_S
from profiler.plain import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.views.breakdown_model import BreakdownModel, StageLine


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("Bars", text)


def sum_text(model: BreakdownModel) -> str:
    """Say what the categories add up to, and whether that equals the wall time."""
    equal = "=" if abs(model.sum_ms - model.wall_ms) <= 0.005 * model.wall_ms else "≠"
    sums = milliseconds(model.sum_ms), equal, milliseconds(model.wall_ms), rtf_text(model.rtf)
    return tr("sum {0} ms {1} wall {2} ms · RTF {3}").format(*sums)


def before_text(model: BreakdownModel) -> str:
    """Show the baseline, pinned or the same speech with the settings before, and the difference."""
    if model.pinned is not None and model.before_wall_ms is not None:
        first, last = (clock(frame * FRAME_S, 2) for frame in model.pinned)
        ratio = ratio_text(model.wall_ms, model.before_wall_ms)
        text = tr("{0} baseline {1} – {2} (pale: {3} ms)")
        return text.format(ratio, first, last, milliseconds(model.before_wall_ms))
    effect = model.effect
    if effect is None:
        return ""
    if model.before_wall_ms is None:
        return tr("baseline: {0}").format(effect.headline)
    # The bars are of all speech since, the factor of that alone which was decoded before, too.
    text = tr("pale bars: before, {0} ms · {1} on the same {2} s of speech")
    return text.format(milliseconds(model.before_wall_ms), effect.headline, f"{effect.seconds:.0f}")


def ratio_text(value: float, baseline: float) -> str:
    """A figure as a multiple of that of the baseline: 0.85×; a dash where that is zero."""
    return f"{value / baseline:.3g}×" if baseline > 0 else "–"


def reasons(key: str) -> tuple[str, ...]:
    """Why a category is zero: in words, and in fewer where there is little room."""
    return tuple(tr(text) for text in REASONS[key])


def verdicts(line: StageLine) -> tuple[str, ...]:
    """What bounds a stage, with its grade, and shorter: compute · C, compute; blank if there is none.

    Where other programs had much of its time, their share follows: bandwidth · B · 53 % preempted. The form is the
    same in wide and narrow columns: compute next to compute-bound would look like two verdicts.
    """
    of = line.verdict.removesuffix("-bound")
    graded = " · ".join(filter(None, (of, line.evidence)))
    taken = next((part.share for part in line.parts if part.name == OTHER_PROGRAMS), 0.0)
    short = (graded, of or line.evidence)
    if not of or taken < PREEMPTED_FROM:
        return short
    much = f"{100 * taken:.0f}"
    return (
        tr("{0} · {1} % preempted").format(graded, much),
        tr("{0} · {1} % other").format(graded, much),
        *short,
    )


def explanation(line: StageLine, stages: Sequence[StageLine]) -> str:
    """The share of a stage in its group, and where its time went; of a group, its largest part and stage.

    `stages`: all of the range; a line that is none of them is a group.
    """
    if line not in stages:
        return _of_group(line, stages)
    texts = ("{0} of the time", "{0} of the operations", "{0} of the bytes")
    shares = zip(line.of_group, texts, strict=True)
    parts = [tr(text).format(percent(part)) for part, text in shares if part is not None]
    said = []
    if parts:
        said.append(tr("Within {0}, {1} takes {2}").format(line.group, line.name, ", ".join(parts)))
    if line.intensity is not None:
        roof = {
            None: "",
            True: tr(", limited by memory bandwidth"),
            False: tr(", limited by peak arithmetic"),
        }[line.memory_roof]
        said.append(tr("{0} operations per byte{1}").format(f"{line.intensity:.3g}", roof))
    return " ".join(filter(None, ["; ".join(said) + "." if said else "", line.sentence]))


def _of_group(line: StageLine, stages: Sequence[StageLine]) -> str:
    largest = max(line.parts, key=lambda part: part.share)
    text = tr("All stages of {0} take {1} ms per 10 ms frame; {2} is the largest part ({3}).")
    whole = text.format(line.name, milliseconds(line.ms), PART_NAMES[largest.name], percent(largest.share))
    mine = [stage for stage in stages if stage.group == line.group]
    dearest = max(mine, key=lambda stage: stage.ms, default=None)
    return whole if dearest is None else f"{whole} {explanation(dearest, stages)}"


def tip(line: StageLine, stages: Sequence[StageLine]) -> str:
    """The explanation of a row and, below it, all its parts with their intervals."""
    parts = [part_text(part) for part in rows_of(line.parts)]
    return "\n".join(filter(None, [explanation(line, stages), *parts]))
