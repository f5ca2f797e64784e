"""What would make a run faster: its stages by what they could give, each with the settings that attack it. No Qt.

A stage could give all of its time but what it would take at the roof that binds it, of arithmetic or of memory. It is a
bound, not a promise; a change is predicted and tried. Neither other programs nor the run's own bookkeeping are ranked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pipelines import config as settings
from pipelines.config import MIXTURES, Config, ConfigError, Value
from profiler.analysis.categories import OVERHEAD
from profiler.analysis.whatif import PredictedStage, Prediction

if TYPE_CHECKING:
    from app.model.desk_snapshot import DeskSnapshot

ARITHMETIC: Final = "arithmetic"
LEAST: Final = 0.005  # Share of the run below which a stage is not worth a try


@dataclass(frozen=True)
class Change:
    """Settings that make a stage do less or wait less: what they are called, and why they help."""

    settings: Mapping[str, Value]
    title: str
    why: str

    @property
    def text(self) -> str:
        return ", ".join(f"{key}={settings.value_text(value)}" for key, value in self.settings.items())


@dataclass(frozen=True)
class Candidate:
    """A stage that could take less; None is what is not known."""

    name: str
    group: str
    ms: float  # Per frame
    share: float  # Of the run, 0…1
    headroom: float | None  # Share of its time above the roof that binds it
    largest: str | None  # Its largest part apart from arithmetic (a key of `categories.PARTS`)
    changes: tuple[Change, ...] = ()  # What would help its group, at the stage of it that could give most

    @property
    def could_give(self) -> float:
        return self.share * (1.0 if self.headroom is None else self.headroom)

    def lowest(self, rtf: float | None) -> float | None:
        """Return the RTF of a run of this RTF, if the stage gave all that it could."""
        return None if rtf is None else rtf * (1.0 - self.could_give)


def candidates(desk: DeskSnapshot, config: Config | None) -> tuple[Candidate, ...]:
    """The stages of a scope by what they could give, the most first; `config`: the settings they ran with."""
    found = []
    for line in desk.stages:
        if line.group != OVERHEAD and line.share is not None and line.share >= LEAST:
            waits = [part for part in line.parts if part.name != ARITHMETIC]
            largest = max(waits, key=lambda part: part.share).name if waits else None
            headroom = None if line.roof is None else 1.0 - line.roof
            found.append(Candidate(line.name, line.group, line.ms, line.share, headroom, largest))
    ranked = sorted(found, key=lambda one: -one.could_give)
    first = {one.group: one for one in reversed(ranked)}
    # What attacks a group stands under the stage of it that could give most.
    return tuple(
        replace(one, changes=tuple(_changes(one.group, config)))
        if config is not None and one is first[one.group]
        else one
        for one in ranked
    )


def unchanged(desk: DeskSnapshot) -> Prediction:
    """The scope as it was, without other programs, for `whatif.scaled` to start from."""
    frames = desk.frames
    lines = []
    for one in desk.stages:
        if one.group != OVERHEAD and one.share is not None:
            ns = one.ms * frames * 1e6
            lines.append(PredictedStage(one.name, one.group, ns, ns, {}))
    rest = sum(one.ms for one in desk.groups if one.name == OVERHEAD) * frames * 1e6
    audio_s = 0.0 if desk.costs is None or desk.of_steps else desk.costs.audio_s
    return Prediction(audio_s, (*lines, PredictedStage(OVERHEAD, OVERHEAD, rest, rest, {})))


LARGE_BLOCK: Final = 16
SMALL_MAX_ACTIVE: Final = 3000
NARROWER: Final = 2.0  # Nat that the beam is narrowed by
LEAST_BEAM: Final = 6.0


def _changes(group: str, config: Config) -> Iterator[Change]:
    for change in _helpful(group, config):
        with suppress(ConfigError):
            settings.check(settings.assign(config, change.settings))
            yield change


def _helpful(group: str, c: Config) -> Iterator[Change]:
    if group == "search":
        if (beam := c.search.beam - NARROWER) >= LEAST_BEAM:
            yield Change({"search.beam": beam}, f"beam {beam:g}", "fewer tokens in every frame")
        if c.search.max_active > SMALL_MAX_ACTIVE:
            fewer = {"search.max_active": SMALL_MAX_ACTIVE}
            yield Change(fewer, f"max active {SMALL_MAX_ACTIVE}", "cuts only frames with many tokens")
    if group != "scoring":
        return
    if c.block < LARGE_BLOCK and c.model != "ctc":
        why = "one read of the parameters serves more frames; more latency"
        yield Change({"block": LARGE_BLOCK}, f"block {LARGE_BLOCK}", why)
    if c.model in MIXTURES:
        if not c.gmm.selection.enabled:
            yield Change({"gmm.selection.enabled": True}, "Gaussian selection", "fewer Gaussians for each frame")
        if c.gmm.senones == "all":
            yield Change({"gmm.senones": "active"}, "active senones", "only the senones that the search needs")
        if c.gmm.component == "full":
            yield Change({"gmm.component": "int8"}, "8-bit parameters", "a quarter of the bytes")
    if c.model == "dnn" and c.dnn.dtype == "fp32":
        yield Change({"dnn.dtype": "int8"}, "8-bit weights", "a quarter of the bytes")
    if c.model == "dnn" and c.dnn.senones == "all":
        yield Change({"dnn.senones": "active"}, "lazy outputs", "only the outputs that the search needs")
    if c.model == "ctc" and c.ctc.dtype == "stored":
        yield Change({"ctc.dtype": "int8"}, "8-bit weights", "fewer bytes, and products of integers")
    if c.frames.skip == 1 and c.model != "ctc":
        yield Change({"frames.skip": 2}, "score every 2nd frame", "half of all scoring")
