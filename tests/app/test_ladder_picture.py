"""The picture of the ladder: a bar for each rung in every panel, intervals of word errors, and its origin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from app.style.theme import LIGHT
from tests.bench._ladder_picture import charts, ladder_picture


def row(preset: str, title: str, ms: float, wer: float | None = 0.4, **more: Any) -> dict[str, Any]:
    known = {"preset": preset, "title": title, "ms": ms, "wer": wer, "missing": None}
    known |= {"times_first": 4.0 / ms, "rtf": 0.1, "weights_mb": 10.0, "wer_change_ci95": None}
    return known | more


TREE = {
    "rows": [
        row("gmm", "GMM, 5 000 words", 0.2),
        row("ladder-1-scalar", "Ladder 1 · scalar loop", 4.0, same_as="dnn"),
        row("ladder-2-simd", "Ladder 2 · vectors (SIMD)", 0.4, None),
        row("dnn", "Neural net", 0.2),
        row("dnn-small", "Net · small", 0.1, 0.44, wer_change_ci95=[0.01, 0.07]),
        row("dnn-large", "Net · large", 0.1, missing="There is no net 'large'."),
    ],
    "rounds": 3,
    "agreement": {"words": 1500},
    "machine": {"cpu": "a processor", "cores": {"usable": 2}, "versions": {"numpy": "2.4"}},
    "measured_at": 1.8e9,
}


def test_every_rung_has_a_bar_in_every_panel_or_is_named_as_missing() -> None:
    time, *_, errors = charts(TREE)
    assert time.x.categories[1:3] == ("1  scalar loop  × 1.0", "2  vectors (SIMD)  × 10.0")
    assert time.x.categories[5] == "large: not here"
    assert time.layers[0].values == (0.2, 4.0, 0.4, 0.2, 0.1, None)
    bars, plain = errors.layers
    assert bars.values[:5] == pytest.approx((40, 40, None, 40, 44))
    # The plain net's 40 % with the interval of the difference.
    assert (bars.low[4], bars.high[4], plain.value) == pytest.approx((41, 47, 40))


def test_the_picture_is_light_and_carries_its_origin(qtbot: QtBot, tmp_path: Path) -> None:
    out = tmp_path / "ladder.png"
    ladder_picture(TREE, out, scale=1.0)
    image = QImage(str(out))
    assert image.pixelColor(2, image.height() - 2) == QColor(LIGHT.surface)
    colours = {image.pixel(x, y) for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)}  # fmt: skip
    assert QColor(LIGHT.category["compute"]).rgb() in colours
    assert json.loads(image.text("asrscope"))["machine"] == "a processor, 2 cores"
    everything_missing = TREE | {"rows": [r | {"missing": "away"} for r in TREE["rows"]]}
    ladder_picture(everything_missing, out, scale=1.0)
