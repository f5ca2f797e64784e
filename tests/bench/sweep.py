"""A sweep of three settings over the bundled voices, against all their combinations measured on their own.

    asrscope bench sweep --json

The sweep tries each combination between two runs of the reference, and confirms what may be on the front. Then every
combination is compared with the reference in turns (`asrscope ab`). A combination that is below a point of the front in
both objectives, with intervals apart, would be one that the sweep has missed. There is no peer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from pipelines import config as settings
from pipelines.config import presets
from pipelines.experiments.sweep import space
from pipelines.experiments.sweep.folder import Sweep, opened
from pipelines.experiments.sweep.home import Home
from pipelines.experiments.sweep.judge import AFTER, BEFORE, Confirmed, read_report
from pipelines.experiments.sweep.study import Study, plan_grid
from pipelines.run import playlist
from profiler.process import children
from tests.bench._rounds import Progress

PRESET: Final = "gmm-quick"
OVER: Final = ("search.beam=6,11", "frames.skip=1,2", "block=4,16")


def run(audio: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """The rows of all combinations, and how many of them dominate a point of the front outside its interval."""
    words = ["--preset", PRESET, *(["--audio", *audio] if audio else [])]
    words += ["--transcripts", transcripts] if transcripts else []
    reference = settings.replace(presets.load(PRESET).config, "loop", False)
    sweep = Sweep(
        reference=reference,
        axes=space.parse_axes(OVER),
        objectives=("rtf", "wer"),
        constraints=(),
        items=tuple(playlist.build(audio, transcripts).items),
        program=tuple(children.python("-m", "app.cli.main")),
        words=tuple(words),
        repeat=max(repeat, 3),
    )
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), sweep) as storage:
        study = Study(Path(folder), sweep, storage)
        study.run(Home(), plan_grid(study, 1000), progress, lambda: False)
        front = [point.trial for point in study.front()]
        study.confirm(Home(), progress, lambda: False, everything=True)
        return _tree(study, front)


def _tree(study: Study, front: list[int]) -> dict[str, Any]:
    rows, drifts = [], []
    for one in study.trials():
        outcome = study.confirmations.get(one.number)
        confirmed = outcome if isinstance(outcome, Confirmed) else None
        row = {"trial": one.number, **one.chosen, "state": one.state, "front": one.number in front}
        if one.figures is not None:
            row |= {"rtf_ratio": one.figures.rtf_ratio, "wer": one.figures.wer}
            before, after = (read_report(Path(one.figures.session).with_name(f"{n}.json")) for n in (BEFORE, AFTER))
            drifts.append(abs(after.seconds() / before.seconds() - 1))
        if confirmed is not None:
            row |= {"in_turns": confirmed.ratio, "low": confirmed.ci95[0], "high": confirmed.ci95[1]}
        rows.append(row)
    grid = [row for row in rows if "in_turns" in row]
    missed = [
        (a["trial"], b["trial"])
        for b in grid
        if b["front"]
        for a in grid
        if a["wer"] <= b["wer"] and a["high"] < b["low"]
    ]
    inside = [row["low"] <= row["rtf_ratio"] <= row["high"] for row in grid]
    return {
        "peer": None,
        "ratio": None,
        "ratio_meaning": "settings whose point of the front a combination dominates outside its interval: 0 is right",
        "figures": {
            "missed": len(missed),
            "combinations": len(rows),
            "measured_in_turns": len(grid),
            "on_the_front": len(front),
            "off_by_median": median(abs(row["rtf_ratio"] / row["in_turns"] - 1) for row in grid),
            "inside_the_interval": sum(inside),
            "reference_drift_median": median(drifts),
        },
        "agreement": {"word errors": "the same in the trial and in the repeats in turns, or the row has no interval"},
        "rows": rows,
    }
