"""The lines below the categories of the breakdown: what they add up to, and what it was before the last change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.views.scale import milliseconds

if TYPE_CHECKING:
    from app.views.breakdown_model import BreakdownModel


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("Bars", text)


def sum_text(model: BreakdownModel) -> str:
    """Say what the categories add up to, and whether that equals the wall time."""
    equal = "=" if abs(model.sum_ms - model.wall_ms) <= 0.005 * model.wall_ms else "≠"
    sums = milliseconds(model.sum_ms), equal, milliseconds(model.wall_ms), f"{model.rtf:.3f}"
    return tr("sum {0} ms {1} wall {2} ms · RTF {3}").format(*sums)


def before_text(model: BreakdownModel, short: bool = False) -> str:
    """Show the value before the last change, and the difference; `short`: only the latter."""
    if model.before_wall_ms is None:
        return ""
    before = milliseconds(model.before_wall_ms)
    if not (model.wall_ms > 0 and model.before_wall_ms > 0):
        return tr("pale: before, {0} ms").format(before)
    ratio = model.before_wall_ms / model.wall_ms
    change = tr("{0}× faster") if ratio >= 1 else tr("{0}× slower")
    change = change.format(f"{max(ratio, 1 / ratio):.2f}")
    if short:
        return tr("pale: before · now {0}").format(change)
    return tr("pale: before, {0} ms · now {1}").format(before, change)
