"""Every stage of scoring says what it counts, and counts what its spans record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scoring_reference import likely_features

from pipelines.config import Config, Value, assign, get, option, unavailable_reason
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import build_scorer
from profiler.costs import KERNEL_CALL, NUMPY_CALL, Cost
from profiler.spans import SPAN, Recorder
from tests.each import each

Models = Mapping[str, AcousticModel]

KINDS = {"tied": "ptm", "three streams": "continuous", "one stream": "continuous"}
SMALL: dict[str, Value] = {"gmm.selection.codewords": 16, "gmm.selection.expand": 5}


def choices(key: str) -> tuple[str, ...]:
    """What the setting may be."""
    found = option(key).choices
    assert found, key
    return tuple(map(str, found))


def mixtures() -> Iterator[tuple[str, dict[str, Value]]]:
    """(kind of model, settings) of every choice of selection, component and senones that may be combined."""
    for kind, model in KINDS.items():
        whole: dict[str, Value] = {"model": model}
        for key in ("gmm.component", "gmm.senones"):
            for choice in choices(key):
                yield kind, whole | {key: choice}
        yield kind, whole | {"frames.skip": 2}
        yield kind, whole | {"frames.skip": 2, "frames.rule": "conditional"}
        for method in choices("gmm.selection.method"):
            chosen = whole | {"gmm.selection.enabled": True, "gmm.selection.method": method}
            for key in ("gmm.component", "gmm.senones"):
                for choice in choices(key):
                    yield kind, chosen | {key: choice}


def allowed(changes: Mapping[str, Value]) -> bool:
    """Whether these settings go together."""
    config = assign(Config(), {"model": changes["model"]})
    try:
        config = assign(config, SMALL | dict(changes))
    except ValueError:
        return False
    return all(unavailable_reason(config, key, get(config, key)) is None for key in changes)


def named(changes: Mapping[str, Value]) -> str:
    return " ".join(str(value) for value in changes.values())


ALLOWED = list({(kind, named(c)): (kind, c) for kind, c in mixtures() if allowed(c)}.values())
NAMES = [f"{kind}: {named(changes)}" for kind, changes in ALLOWED]


def check(costs: Mapping[str, Cost]) -> None:
    """Each of `costs` is a law, or says why there is none, and is the same from a file; calls are those measured."""
    for name, cost in costs.items():
        assert cost.unmodelled or not cost.is_empty, f"{name} has neither a law nor a reason"
        assert Cost.from_dict(cost.as_dict()) == cost
        assert set(cost.calls) <= {KERNEL_CALL, NUMPY_CALL}


@each("kind, changes", ALLOWED)
def test_mixtures_have_laws_that_count_what_the_spans_record(
    models: Models, kind: str, changes: dict[str, Value]
) -> None:
    """No law counts for less than nothing, and none of the stages goes without work."""
    check(build_scorer(assign(Config(), SMALL | changes | {"block": 1}), models[kind]).costs())
    recorder = Recorder()
    lane = recorder.lane("decode", decode=True)
    scorer = build_scorer(assign(Config(), SMALL | changes), models[kind])
    scorer.stages(recorder)
    block = likely_features(models[kind], 16)
    scorer.reset()
    state = scorer.prepare(block, 0, lane)
    for t in range(len(block)):
        scorer.frame(state, t, None)
    spans = np.frombuffer(lane.take(), SPAN)
    names = {stage.id: stage.name for stage in recorder.stages}
    costs = scorer.costs()
    check(costs)
    for stage in set(spans["stage"].tolist()):
        mine = spans[spans["stage"] == stage]
        cost = costs[names[stage]]
        laws = [*cost.operations.values(), *cost.calls.values(), cost.bytes_min, cost.bytes_max]
        counts = [law.of(mine) for law in laws]
        assert all((count >= 0).all() for count in counts), names[stage]
        assert sum(float(count.sum()) for count in counts) > 0
