"""Old names of stages and work counts, still read from sessions: whoever reads one sees today's names alone."""

from collections.abc import Mapping
from typing import Final

STAGES: Final[Mapping[str, str]] = {
    "search.ask": "search.active",
    "score.wanted outputs": "score.active outputs",
    "setup.peaks": "setup.roofs",
}
"""Old stage → stage."""

WORK: Final[Mapping[str, Mapping[str, str]]] = {
    "search.active": {"asked": "active"},
    "search.backtrace": {"entries": "backpointers"},
}
"""Stage, by today's name → old work count → work count."""


def named_now(stage: str, work: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Today's name of a stage and of its work counts."""
    now = STAGES.get(stage, stage)
    counts = WORK.get(now, {})
    return now, tuple(counts.get(name, name) for name in work)
