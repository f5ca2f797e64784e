"""Calibrating from the window: what the verb measured, as the picture has it and as a table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.pictures.calibration import CalibrationPicture
from app.window.tasks.calibrate import CalibrationPage


def roof(kind: str, name: str, size: int, median: float, unit: str) -> dict[str, object]:
    return {
        "kind": kind, "name": name, "dtype": "float32", "threads": 1, "bytes": size, "median": median,
        "low": 0.9 * median, "high": 1.1 * median, "unit": unit, "spread": 0.1, "steady": True,
        "disturbed": False, "measured_at": 1.7e9, "part": "run",
    }  # fmt: skip


def test_ladder_and_rates_are_shown(tmp_path: Path, qtbot: QtBot) -> None:
    tree = {
        "schema": 1,
        "machine": {"cpu": "a processor", "cores": 2, "caches": []},
        "roofs": [
            roof("rate", "gemm", 0, 1e11, "op/s"),
            *(roof("bandwidth", "read", 1 << n, 1e11 / n, "B/s") for n in range(14, 28, 2)),
        ],
        "measured_at": 1.7e9,
        "unavailable": [{"name": "device", "reason": "there is no accelerator"}],
    }
    printed = tmp_path / "printed.json"
    printed.write_text(json.dumps(tree))
    parent = QWidget()
    qtbot.addWidget(parent)
    code = f"print(open({str(printed)!r}).read())"
    made = CalibrationPage(parent, (sys.executable, "-c", code))
    made.show()
    qtbot.waitUntil(lambda: not made.working)
    assert made.findChildren(CalibrationPicture)
    made.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert "2023-11-1" in copied
    assert "rate gemm\tfloat32\t1\t100 Gop/s\t110 Gop/s" in copied
    assert "device: there is no accelerator" in copied
    made.close()
