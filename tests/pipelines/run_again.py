"""What the tests of reruns share: small configurations, and progress and cancelling that nobody minds."""

from __future__ import annotations

from pipelines import config as settings
from pipelines.config import Config, presets
from pipelines.experiments import perturb

QUICK = presets.load("gmm-quick").config
NET = settings.assign(presets.load("dnn").config, {"graph.vocabulary": 500, "graph.bigrams": 5000, "block": 4})


def quiet(what: str, fraction: float | None) -> None:
    """Progress that nobody sees."""


def never() -> bool:
    return False


def reasons(config: Config, stage: str, group: str, work: str = "") -> dict[str, str | None]:
    return {c.name: c.unavailable for c in perturb.changes(config, stage, group, work)}
