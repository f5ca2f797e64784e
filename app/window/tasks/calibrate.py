"""Calibrate: `asrscope calibrate` measures the roofs of this machine, with progress, and shows ladder and rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QDateTime
from PySide6.QtWidgets import QWidget

from app.model.report import read_printed
from app.window.tasks.page import VERB, TaskPage
from app.window.tasks.workbench import Workbench
from pipelines.labs.texts import figure

HEIGHT: Final = 440
"""Pixels that the names of the rates take."""

CALIBRATE: Final = (*VERB, "calibrate", "--json")


class CalibrationPage(TaskPage):
    """The rates and the bandwidth ladder of this machine; what is known and undisturbed is not measured again."""

    def __init__(self, parent: QWidget, command: Sequence[str] = CALIBRATE) -> None:
        super().__init__(
            self.tr("Roofs of this machine"),
            command,
            self.tr("Measuring the rates of this machine; use it for nothing else meanwhile …"),
            parent,
        )

    def show_result(self, printed: bytes) -> None:
        """Show ladder and rates as the picture has them, and what is missing."""
        from app.pictures.calibration import CalibrationPicture

        tree = read_printed(printed)
        at = QDateTime.fromSecsSinceEpoch(int(tree["measured_at"] or 0))
        self.state.setText(self.tr("Last measured: {0}").format(at.toString("yyyy-MM-dd HH:mm")))
        picture = CalibrationPicture(tree)
        picture.setMinimumHeight(HEIGHT)
        self.add_widget(picture, 3)
        titles = ("rate", "type", "threads", "median", "best")
        rows: list[list[object]] = [
            [
                " ".join(filter(None, (row["kind"], row["name"]))),
                row["dtype"],
                row["threads"],
                figure(row["median"], row["unit"]),
                figure(row["high"], row["unit"]),
            ]
            for row in tree["roofs"]
        ]
        self.add_table(self.tr("Roofs"), ([self.tr(text) for text in titles], rows), 2)
        for missing in tree["unavailable"]:
            self.add_sentence(f"{missing['name']}: {missing['reason']}")


def begin(bench: Workbench) -> None:
    bench.place(CalibrationPage(bench.window), False)
