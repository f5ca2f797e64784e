"""Memory of real runs: its growth over hours of audio, and whether a component that was made larger is named.

    python -m tests.bench.memory_use --hours 2      growth of each component per audio hour, over looped speech
    python -m tests.bench.memory_use --tries 10     runs in which one component in turn holds PLANTED bytes more

A planted component counts as named if it, and no other, has grown by PLANTED bytes (± 5 %) between two sessions.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import numpy as np

import assets
from app.model import memory
from pipelines.config import Config, presets
from pipelines.run.control import Control
from pipelines.run.order import PlaylistOrder
from pipelines.run.recogniser import Recogniser
from pipelines.run.session_run import Request, execute
from profiler.session.reader import Session
from tests.bench._rounds import command_line

PLANTED: Final = 10_000_000
SLACK: Final = 0.05
COMPONENTS: Final = {
    "model": lambda one: one.scorer,
    "graph": lambda one: one.search.graph,
    "tokens": lambda one: one.search,
    "frontend": lambda one: one.frontend,
}
"""Those that an object of the recogniser stands for, which can be made to hold more."""


class Planting(PlaylistOrder):
    """Decodes the files in order, `plant` having been called with the recogniser."""

    def __init__(self, repeat: int, plant: Callable[[Recogniser], object]) -> None:
        super().__init__(repeat, Control(), lambda *_: None)
        self._plant = plant

    def prepare(self, recogniser: Recogniser, build: Callable[[Config], Recogniser]) -> None:
        super().prepare(recogniser, build)
        self._plant(recogniser)


def hold_more(component: str | None) -> Callable[[Recogniser], object]:
    """What makes this component hold PLANTED bytes more; nothing for None."""

    def plant(recogniser: Recogniser) -> None:
        if component is not None:
            # Past the frozen dataclass of a graph.
            object.__setattr__(COMPONENTS[component](recogniser), "planted", np.ones(PLANTED, np.uint8))

    return plant


def recorded(audio: Sequence[Path], repeat: int = 1, component: str | None = None) -> dict[str, Any]:
    """The memory of a run over `audio` as a report has it (`app.model.memory.memory`), and its `hours` of audio."""
    config = presets.load("gmm-quick").config
    with tempfile.TemporaryDirectory(prefix="asrscope-memory-") as folder:
        out = Path(folder) / "run.asrs"
        request = Request(config, "gmm-quick", tuple(map(str, audio)), None, out, repeat)
        execute(request, Control(), lambda *_: None, order=Planting(repeat, hold_more(component)))
        with closing(Session.open(out)) as session:
            tree = memory.memory(session)
            assert tree is not None, "this system does not tell the memory of a process"
            return {**tree, "hours": sum(one.audio_s for one in session.utterances) / 3600}


def named(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The components that hold PLANTED bytes more than before, or more than that."""
    return [
        name
        for name in COMPONENTS
        if after["components"][name]["used_bytes"] - before["components"][name]["used_bytes"] > PLANTED * (1 - SLACK)
    ]


def growth(audio: Sequence[Path], hours: float) -> dict[str, Any]:
    """Growth per hour over so much audio, as lists of MB: likely, low, high."""
    once = recorded(audio)["hours"]
    tree = recorded(audio, max(round(hours / once), 1))
    slopes = {"resident": tree["growth_bytes_per_audio_hour"]}
    slopes |= {name: one["growth_bytes_per_audio_hour"] for name, one in tree["components"].items()}
    mb = {
        name: None if slope is None else [round(slope[key] / 1e6, 3) for key in ("likely", "low", "high")]
        for name, slope in slopes.items()
    }
    return {"hours": round(tree["hours"], 3), "resident_mb": round(tree["resident_bytes"] / 1e6, 1), "growth_mb": mb}


def planted(audio: Sequence[Path], tries: int) -> dict[str, Any]:
    """Runs with a planted component, each next to one without."""
    rows = []
    recorded(audio)  # the first run of a process loads what all others have
    for component in islice(cycle(COMPONENTS), tries):
        found = named(recorded(audio), recorded(audio, component=component))
        rows.append({"planted": component, "named": found})
    return {"tries": tries, "right": sum(row["named"] == [row["planted"]] for row in rows), "rows": rows}


def main() -> int:
    parser = command_line("memory_use", __doc__)
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--tries", type=int, default=0)
    given = parser.parse_args()
    speech = sorted(assets.path("speech").glob("*.flac"))
    tree: dict[str, Any] = {}
    if given.hours:
        tree |= growth(speech, given.hours)
    if given.tries:
        tree |= planted(speech[-1:], given.tries)
    print(json.dumps(tree))
    return 0


if __name__ == "__main__":
    sys.exit(main())
