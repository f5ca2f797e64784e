"""The bench of the window: a platform on which Qt cannot start lacks its figures, the others have theirs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from tests.bench import desk


def test_a_platform_that_does_not_start_is_named_and_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`nonsense` stands for an X server whose libraries are not all there: Qt ends the process."""
    ran = []
    real = desk._part

    def part(name: str, platform: str, extra: dict[str, str], *words: str) -> dict[str, Any]:
        if name == "opens":
            return real(name, platform, extra, *words)
        ran.append((name, platform))
        took = {"open_1e6_s": float(len(ran)), "open_1e6_cpu_s": 1.0}
        return {"part": name, "platform": platform, "first_paint_s": 0.5, **took}

    monkeypatch.setattr(desk, "_part", part)
    monkeypatch.setattr(desk, "SPANS", 80)
    monkeypatch.setattr(desk, "HOUR_BLOCKS", 3)
    platforms = [(name, nullcontext({})) for name in ("offscreen", "nonsense")]
    monkeypatch.setattr(desk, "_platforms", lambda: iter(platforms))
    progress: list[str] = []
    found = desk.run([], None, 1, lambda text, share: progress.append(text))
    assert {platform for _, platform in ran} == {"offscreen"}
    assert {name for name, _ in ran} == {"live", "start", "opening", "million", "hour", "cycles"}
    assert found["figures"]["first_paint_s"] == 0.5
    (million,) = (row for row in found["rows"] if row["part"] == "million")
    openings = [float(i + 1) for i, (name, _) in enumerate(ran) if name in ("opening", "million")]
    assert (million["open_1e6_s"], million["open_1e6_s_most"]) == (openings[1], openings[2])
    (remark,) = [text for text in progress if text.startswith("no X figures: ")]
    assert "nonsense" in remark
    assert found["agreement"]["nonsense"] == remark
