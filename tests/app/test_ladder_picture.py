"""The picture of the ladder: sections, scales, and what is missing or is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from app.style.theme import LIGHT
from tests.bench._ladder_picture import ladder_picture, sections


def row(preset: str, title: str, ms: float, wer: float | None = 0.4, **more: Any) -> dict[str, Any]:
    known = {"preset": preset, "title": title, "ms": ms, "wer": wer, "missing": None}
    known |= {"times_first": 4.0 / ms, "rtf": 0.1, "weights_mb": 10.0, "wer_change_ci95": None}
    return known | more


@pytest.fixture
def known() -> dict[str, Any]:
    return {
        "rows": [
            row("gmm", "GMM, 5 000 words", 0.2),
            row("ladder-1-scalar", "Ladder 1 · scalar loop", 4.0, same_as="dnn"),
            row("ladder-2-simd", "Ladder 2 · vectors (SIMD)", 0.4, None),
            row("dnn", "Neural net", 0.2),
            row("dnn-small", "Net · small", 0.1, 0.44, wer_change_ci95=[0.01, 0.07]),
            row("dnn-large", "Net · large", 0.1, missing="There is no net 'large'."),
            row("dnn-skip", "Net · skip", 0.1, 0.6, wer_change_ci95=[0.18, 0.22]),
        ],
        "rounds": 3,
        "agreement": {"words": 1500},
        "machine": {"cpu": "a processor", "cores": {"usable": 2}, "versions": {"numpy": "2.4"}},
        "measured_at": 1.8e9,
    }


def test_rows_are_parted_into_reference_ladder_and_other_nets(known: dict[str, Any]) -> None:
    found = {part.category: [r["preset"] for r in part.rows] for part in sections(known["rows"])}
    assert list(found.values()) == [
        ["gmm"],
        ["ladder-1-scalar", "ladder-2-simd"],
        ["dnn", "dnn-small", "dnn-large", "dnn-skip"],
    ]
    assert [part.category for part in sections(known["rows"][3:])] == ["search"]


def test_the_picture_is_light_and_carries_its_origin(
    qtbot: QtBot, known: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "ladder.png"
    ladder_picture(known, out, scale=1.0)
    image = QImage(str(out))
    assert image.pixelColor(2, 2) == QColor(LIGHT.surface)
    colours = {image.pixel(x, y) for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)}  # fmt: skip
    assert QColor(LIGHT.category["compute"]).rgb() in colours
    assert json.loads(image.text("asrscope"))["machine"] == "a processor, 2 cores"
    everything_missing = known | {"rows": [r | {"missing": "away"} for r in known["rows"]]}
    ladder_picture(everything_missing, out, scale=1.0)
