"""The ladder's bench: turns, replays, results kept, words shared by rungs that score alike, rungs that are missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.config import presets
from pipelines.config.presets import Preset
from pipelines.experiments.scoring_replay import spoken
from pipelines.run import playlist
from pipelines.run.playlist import Item
from tests.bench import _rounds, ladder
from tests.bench._ladder_text import markdown

CHOSEN = (
    "gmm",
    "ladder-2-simd",
    "ladder-3-blas",
    "ladder-5-batch",
    "ladder-6-lazy",
    "dnn",
    "dnn-skip",
)


def quietly(title: str, fraction: float | None) -> None:
    """No progress."""


def small(name: str) -> Preset:
    """A preset on the graph that the tests share."""
    preset = presets.load(name)
    quick = presets.load("gmm-quick").config
    for key in ("graph.vocabulary", "graph.bigrams"):
        changed = settings.replace(preset.config, key, settings.get(quick, key))
        preset = replace(preset, config=changed)
    return preset


@pytest.fixture
def kept_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rounds, "cache_dir", lambda *_: tmp_path)


@pytest.fixture
def items(bundled_speech: Path) -> list[Item]:
    files = [str(bundled_speech / "08-kal16-short.flac")]
    return playlist.build(files, str(bundled_speech / "transcripts.tsv")).items


def test_speech_is_taken_up_to_a_length_and_never_none(bundled_speech: Path) -> None:
    items = playlist.build([], None).items
    lengths = [sound.duration_s for _, sound in spoken(items, 8.0)]
    assert len(lengths) > 1
    assert sum(lengths[1:]) <= 8.0
    assert len(list(spoken(items, 0.1))) == 1


@pytest.mark.usefixtures("kept_here")
def test_rungs_are_held_against_each_other(
    items: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = [small(name) for name in CHOSEN]
    absent = settings.replace(small("dnn-small").config, "dnn.net", "nobody-trained-it")
    chosen.append(replace(small("dnn-small"), config=absent))
    made = ladder.Ladder(chosen, items, [], quietly)
    rows = {row["preset"]: row for row in made.measure(1)}
    missing = {name: row["missing"] for name, row in rows.items() if row["missing"]}
    assert list(missing) == ["dnn-small"], missing
    assert "nobody-trained-it" in missing["dnn-small"]
    assert "ms" not in rows["dnn-small"]

    # The same numbers by another product, in another block, or only where they are asked for.
    assert rows["ladder-2-simd"]["same_as"] == rows["ladder-3-blas"]["same_as"] == "dnn"
    assert 0 < rows["ladder-3-blas"]["same_nat"] <= ladder.SAME_NAT
    assert rows["ladder-6-lazy"]["same_as"] == "ladder-5-batch"
    # Other numbers: 8 bits, copies, mixtures.
    for name in ("ladder-5-batch", "dnn-skip", "gmm", "dnn"):
        assert "same_as" not in rows[name]

    dense, lazy = (r for r in made.rungs if r.preset.name in ("ladder-5-batch", "ladder-6-lazy"))
    (asked,) = lazy.scores
    share = np.isfinite(asked).mean()
    assert 0 < share < 1
    assert share == pytest.approx(rows["ladder-6-lazy"]["asked"])
    assert np.isfinite(dense.scores[0]).all()

    assert rows["ladder-3-blas"]["times_before"] is not None
    assert rows["ladder-5-batch"]["weights_mb"] * 3 < rows["dnn"]["weights_mb"]
    assert rows["ladder-3-blas"]["latency"]["block_frames"] == 1
    assert {row["words"] for row in rows.values() if not row["missing"]} == {3}

    # A second time every word is at hand, and a table comes of it.
    monkeypatch.setattr(ladder, "_decoder", None)
    again = ladder.Ladder(chosen[:1], items, [], quietly)
    again.rungs[0].recogniser = made.rungs[0].recogniser
    assert again._decoded(again.rungs[0])
    text = markdown(tree(list(rows.values())), Path("docs/ladder.png"))
    assert "= ladder-5-batch" in text
    assert "Not here: `dnn-small`. There is no net 'nobody-trained-it'" in text
    assert "](ladder.png)" in text


def tree(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the bench says around its rows."""
    return {
        "rows": rows,
        "rounds": 1,
        "agreement": {"words": 3, "same scores, nat": ladder.SAME_NAT},
        "net": {"parameters": 2_500_000, "of_outputs": 1_300_000},
        "machine": {"cpu": "a processor", "gemm_gflops": 100.0, "read_gbytes_per_s": None},
        "measured_at": 1.8e9,
        "load_before": 0.5,
    }
