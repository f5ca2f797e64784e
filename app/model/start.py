"""What a run did before its first frame, as a waterfall: libraries, model, graph, kernels, measuring. No Qt.

Times count from the start of the process for `asrscope run`, else from the first span of set-up: a process of the
window waits for its user, and decodes more than once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from profiler.session.reader import Session

TITLES: Final = {
    "setup.device": "open the device",
    "setup.model": "read the acoustic model",
    "setup.search": "compile or load the kernels of the search",
    "setup.graph": "build or load the search graph",
    "setup.compile": "compile or load the other kernels",
    "setup.roofs": "measure this machine",
    "setup.idle": "measure the power of the idle machine",
    "decode.utterance": "first file: read, front end",
    "decode.block": "first block: score, search",
}
"""Stages of the start in order, as a person reads them; all others belong to the run."""

LIBRARIES: Final = "start Python, load libraries"

NS: Final = 1e-9


class Phase(NamedTuple):
    """A step of the start and its times in seconds."""

    title: str
    begin_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.begin_s


def phases(session: Session) -> tuple[Phase, ...]:
    """The steps before and with the first block, in order of time; none where nothing was decoded yet."""
    names = {number: stage.name for number, stage in session.stages.items()}
    first: dict[str, tuple[int, int]] = {}
    for number, name in names.items():
        mine = session.spans[session.spans["stage"] == number] if name in TITLES else session.spans[:0]
        if len(mine):
            at = int(mine["start_ns"].argmin())
            first[name] = int(mine["start_ns"][at]), int(mine["duration_ns"][at])
    if "decode.block" not in first:
        return ()
    zero = min(start for start, _ in first.values())
    before = _before(session)
    found = [Phase(LIBRARIES, 0.0, before)] if before else []
    for name, (start, duration) in sorted(first.items(), key=lambda one: one[1]):
        begin = before + (start - zero) * NS
        found.append(Phase(TITLES[name], begin, begin + duration * NS))
    return tuple(found)


def _before(session: Session) -> float:
    """Seconds from the start of the process to that of the session; 0 where they are not the start of a run."""
    argv, writer, created = (session.meta.get(key) for key in ("argv", "writer", "created_wall"))
    started = writer.get("started") if isinstance(writer, dict) else None
    if not isinstance(argv, list) or argv[1:2] != ["run"]:
        return 0.0
    if not isinstance(started, int | float) or not isinstance(created, int | float):
        return 0.0
    return max(float(created - started), 0.0)


def longest(steps: Sequence[Phase]) -> Phase:
    return max(steps, key=lambda one: one.seconds)
