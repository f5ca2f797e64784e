"""The actions of the charts: how the scale of the cost behaves, the roofline in place of the stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication

from app.window.actions.actions import Action

if TYPE_CHECKING:
    from app.views.cost import CostView
    from app.window.main_window import MainWindow

SCALE: Final = ("scale.lock", "scale.log")
"""The actions in the menu of the cost view."""


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("charts", text)


def chart_actions(w: MainWindow) -> list[Action]:
    """The actions about charts, which exist once the desk does."""
    has = w.when.has_session

    def cost() -> CostView:
        from app.views.cost import CostView  # not before the window has been painted

        view = w.desk.views["cost"]
        assert isinstance(view, CostView)
        return view

    return [
        Action(
            "scale.lock",
            tr("Lock the scale of the cost"),
            tr("View"),
            lambda: cost().set_locked(not cost().holding.locked),
            enabled=has,
            checked=lambda: cost().holding.locked,
            help=tr("The scale stays as it is, whatever the data do"),
        ),
        Action(
            "scale.log",
            tr("Logarithmic scale of the cost"),
            tr("View"),
            lambda: cost().set_logarithmic(not cost().holding.log),
            enabled=has,
            checked=lambda: cost().holding.log,
        ),
    ]
