"""Texts of the breakdown: why a category is zero, verdicts, what the sum is, and what it was before the last change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.model.figures import rtf_text
from app.model.report_lines import PREEMPTED_FROM
from app.views.breakdown_model import REASONS
from app.views.scale import milliseconds
from profiler.analysis.categories import OTHER_PROGRAMS

if TYPE_CHECKING:
    from app.views.breakdown_model import BreakdownModel, StageLine


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("Bars", text)


def sum_text(model: BreakdownModel) -> str:
    """Say what the categories add up to, and whether that equals the wall time."""
    equal = "=" if abs(model.sum_ms - model.wall_ms) <= 0.005 * model.wall_ms else "≠"
    sums = milliseconds(model.sum_ms), equal, milliseconds(model.wall_ms), rtf_text(model.rtf)
    return tr("sum {0} ms {1} wall {2} ms · RTF {3}").format(*sums)


def before_text(model: BreakdownModel, short: bool = False) -> str:
    """Show the baseline, the same speech with the settings before, and the difference; `short`: only the latter."""
    effect = model.effect
    if effect is None:
        return ""
    if model.before_wall_ms is None:
        return tr("no baseline yet: {0}").format(effect.headline)
    if short:
        return tr("pale: baseline · {0}").format(effect.headline)
    # The bars are of all speech since, the factor of that alone which was decoded before, too.
    text = tr("pale: baseline, {0} ms · {1} on the same {2} s of speech")
    return text.format(milliseconds(model.before_wall_ms), effect.headline, f"{effect.seconds:.0f}")


def reasons(key: str) -> tuple[str, ...]:
    """Why a category is zero: in words, and in fewer where there is little room."""
    return tuple(tr(text) for text in REASONS[key])


def verdicts(line: StageLine) -> tuple[str, ...]:
    """What bounds a stage, with its grade, and shorter: compute · C, compute; blank if there is none.

    Where other programs had much of its time, that stands behind it: bandwidth · B · 53 % preempted. All stages are
    told alike, wide or narrow: compute beside compute-bound would look like two verdicts.
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
