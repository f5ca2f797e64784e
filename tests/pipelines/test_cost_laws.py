"""Every stage of scoring says what it counts, and counts what its spans record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from scoring_reference import likely_features

from pipelines.config import Config, Value, assign, get, obstacle, option, presets
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import build_scorer
from pipelines.scoring.costs import calls, frame_calls
from profiler.costs import KERNEL_CALL, NUMPY_CALL, Cost, Linear
from profiler.spans import SPAN, Recorder

Models = Mapping[str, AcousticModel]

BLOCKS = (1, 16)

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
    return all(obstacle(config, key, get(config, key)) is None for key in changes)


def named(changes: Mapping[str, Value]) -> str:
    return " ".join(str(value) for value in changes.values())


ALLOWED = list({(kind, named(c)): (kind, c) for kind, c in mixtures() if allowed(c)}.values())
NAMES = [f"{kind}: {named(changes)}" for kind, changes in ALLOWED]


def preset_configs() -> list[tuple[str, str]]:
    """(preset, kind of small model) of every preset that scores by mixtures."""
    found = []
    for name in presets.names():
        model = presets.load(name).config.model
        if model != "dnn":
            kind = "tied" if model == "ptm" else "three streams"
            found.append((name, "one stream" if model == "single-stream" else kind))
    return found


def check(costs: Mapping[str, Cost]) -> None:
    """Each of `costs` is a law, or says why there is none, and is the same from a file; calls are those measured."""
    for name, cost in costs.items():
        assert cost.unmodelled or not cost.is_empty, f"{name} has neither a law nor a reason"
        assert Cost.from_dict(cost.as_dict()) == cost
        assert set(cost.calls) <= {KERNEL_CALL, NUMPY_CALL}


@pytest.mark.parametrize(("name", "kind"), preset_configs())
def test_presets_of_mixtures_have_laws(models: Models, name: str, kind: str) -> None:
    config = assign(presets.load(name).config, small_of(name))
    check(build_scorer(config, models[kind]).costs())


def small_of(name: str) -> dict[str, Value]:
    """Codebooks and clusters as small as the models, where the preset has them."""
    config = presets.load(name).config
    return {key: value for key, value in SMALL.items() if obstacle(config, key, value) is None}


@pytest.mark.parametrize(("kind", "changes"), ALLOWED, ids=NAMES)
def test_mixtures_have_laws(models: Models, kind: str, changes: dict[str, Value]) -> None:
    for block in BLOCKS:
        config = assign(Config(), SMALL | changes | {"block": block})
        check(build_scorer(config, models[kind]).costs())


def test_calls_are_counted_by_span_or_by_frame() -> None:
    assert calls(2, 3) == {KERNEL_CALL: Linear(fixed=2.0), NUMPY_CALL: Linear(fixed=3.0)}
    assert calls(1) == {KERNEL_CALL: Linear(fixed=1.0)}
    assert frame_calls() == {KERNEL_CALL: Linear(per_frame=1.0)}


@pytest.mark.parametrize(("kind", "changes"), ALLOWED, ids=NAMES)
def test_laws_count_what_the_spans_record(
    models: Models, kind: str, changes: dict[str, Value]
) -> None:
    """No law counts for less than nothing, and none of the stages goes without work."""
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
    for stage in set(spans["stage"].tolist()):
        mine = spans[spans["stage"] == stage]
        cost = costs[names[stage]]
        laws = [*cost.operations.values(), *cost.calls.values(), cost.bytes_min, cost.bytes_max]
        counts = [law.of(mine) for law in laws]
        assert all((count >= 0).all() for count in counts), names[stage]
        assert sum(float(count.sum()) for count in counts) > 0
