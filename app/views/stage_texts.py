"""Texts of the breakdown: verdicts, what a stage is, why a category is zero, the sum, what was before a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.charts.scale import percent
from app.model.desk_snapshot import REASONS
from app.model.figures import rtf_text
from app.model.report_lines import PREEMPTED_FROM
from app.views.part_bars import part_text, rows_of
from profiler.analysis.categories import CATEGORY_NAMES, PART_NAMES
from profiler.clock import FRAME_S
from profiler.plain import clock, milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.model.desk_snapshot import DeskSnapshot, StageLine


TOLD_FROM = 0.005
"""Share of the wall time from which other programs are mentioned next to the sum."""


def tr(text: str) -> str:
    return QCoreApplication.translate("Bars", text)


def sum_text(model: DeskSnapshot) -> str:
    """Say what the groups add up to, and what other programs took besides."""
    text = tr("sum {0} ms · RTF {1}").format(milliseconds(model.own_ms), rtf_text(model.rtf))
    if model.other_share < TOLD_FROM:
        return text
    return tr("{0} · {1} ms with other programs").format(text, milliseconds(model.wall_ms))


def before_text(model: DeskSnapshot) -> str:
    """Say what the same speech took before, with the interval of the ratio; of a pinned range, what it took."""
    if model.baseline is not None:
        first, last = (clock(frame * FRAME_S, 2) for frame in model.baseline[:2])
        text = tr("pale: baseline {0} – {1}, {2} ms of its own speech")
        return text.format(first, last, milliseconds(model.baseline.own_ms))
    effect = model.pair
    if effect is None:
        return ""
    if not effect.figures:
        return tr("before: {0}").format(effect.headline)
    same = tr("same {0} s of speech").format(f"{effect.seconds:.0f}")
    return f"{same}: {effect.headline}" + (f" · {effect.needs}" if effect.needs else "")


def name_of(line: StageLine) -> str:
    return CATEGORY_NAMES.get(line.name, line.name)


def reasons(key: str) -> tuple[str, ...]:
    return tuple(tr(text) for text in REASONS[key])


def verdicts(line: StageLine) -> tuple[str, ...]:
    """What bounds a stage, with its grade, and shorter: compute · C, compute; of a device's work, that it is that.

    The form is the same in wide and narrow columns: compute next to compute-bound would look like two verdicts.
    """
    of = line.verdict.removesuffix("-bound")
    graded = " · ".join(filter(None, (of, line.evidence)))
    if line.share is None and line.lane:
        return (tr("on the device · {0}").format(graded), tr("on the device"), tr("device"))
    return graded, of or line.evidence


def explanation(line: StageLine, stages: Sequence[StageLine], of_steps: bool = False) -> str:
    """The share of a stage in its group, and where its time went; of a group, its largest part and stage.

    `stages`: all of the scope; a line that is none of them is a group. `of_steps`: whether frames are a lab's steps.
    """
    if line not in stages:
        return _of_group(line, stages, tr("step") if of_steps else tr("10 ms frame"))
    texts = ("{0} of the time", "{0} of the operations", "{0} of the bytes")
    shares = zip(line.of_group, texts, strict=True)
    parts = [tr(text).format(percent(part)) for part, text in shares if part is not None]
    said = []
    if parts:
        said.append(tr("Within {0}, {1} takes {2}").format(line.group, line.name, ", ".join(parts)))
    if line.intensity is not None:
        # The verdict alone says what limits it.
        said.append(tr("{0} operations per byte").format(f"{line.intensity:.3g}"))
    return " ".join(filter(None, ["; ".join(said) + "." if said else "", line.sentence, _besides(line)]))


def _besides(line: StageLine) -> str:
    if line.other_ms < PREEMPTED_FROM * (line.ms + line.other_ms):
        return ""
    return tr("Other programs took {0} ms besides.").format(milliseconds(line.other_ms))


def _of_group(line: StageLine, stages: Sequence[StageLine], each: str) -> str:
    largest = max(line.parts, key=lambda part: part.share, default=None)
    whole = tr("All stages of {0} take {1} ms per {2}").format(name_of(line), milliseconds(line.ms), each)
    if largest is not None:
        part = PART_NAMES[largest.name], percent(largest.share)
        whole = tr("{0}; {1} is the largest part ({2})").format(whole, *part)
    whole += "."
    mine = [stage for stage in stages if stage.group == line.group]
    dearest = max(mine, key=lambda stage: stage.ms, default=None)
    return whole if dearest is None else f"{whole} {explanation(dearest, stages)}"


def tip(line: StageLine, stages: Sequence[StageLine], of_steps: bool = False) -> str:
    parts = [part_text(part) for part in rows_of(line.parts)]
    return "\n".join(filter(None, [explanation(line, stages, of_steps), *parts]))
