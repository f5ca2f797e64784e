"""Every stage's cost law names what bounds it, and every kernel and call that a law names can be timed.

What a law names is made by `pipelines.kernel_roofs`; here each work is run once, on small models. A layer that has
laws of its own gives them to `check`.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from scoring_reference import likely_features

from pipelines import scoring
from pipelines.config import Config, Value, assign, get, obstacle, option, presets
from pipelines.frontend import roofs as frontend
from pipelines.kernel_roofs import FAMILIES, work_of
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import build_scorer
from pipelines.scoring.dnn import roofs as nets
from pipelines.scoring.kernel_work import KERNEL_CALL, MOST_PASSED, calls
from pipelines.search import roofs as search
from profiler.analysis.law import needed
from profiler.costs import ACCESS, CALL, KERNEL, Cost
from profiler.spans import SPAN, Recorder

Models = Mapping[str, AcousticModel]

BLOCKS = (1, 16)
PROFILERS = ("numpy", "numba", "python")
"""Calls that the profiler measures by itself."""
LARGEST = 1 << 18
"""Bytes that a work goes through here: enough for it to be another than within the first cache."""

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


def check(costs: Mapping[str, Cost], done: set[str]) -> None:
    """Each of `costs` is a law by terms or says why there is none; what it names runs once and is not done again."""
    for name, cost in costs.items():
        assert cost.unmodelled or cost.terms, f"{name} has neither terms nor a reason"
        assert Cost.from_dict(cost.as_dict()) == cost
    for term, _ in needed(costs.values()):
        if term.kind == CALL and term.roof in PROFILERS:
            continue
        sizes = (0, min(int(term.bytes), LARGEST)) if term.kind != ACCESS and term.bytes else (0,)
        for size in sizes:
            if f"{term.roof} {size}" not in done:
                done.add(f"{term.roof} {size}")
                work = work_of(term.roof, size)
                assert work.operations > 0, term.roof
                work.make()(2)


@pytest.fixture(scope="module")
def done() -> set[str]:
    return set()


@pytest.mark.parametrize(("name", "kind"), preset_configs())
def test_presets_of_mixtures_name_what_bounds_them(
    models: Models, done: set[str], name: str, kind: str
) -> None:
    config = assign(presets.load(name).config, small_of(name))
    check(build_scorer(config, models[kind]).costs(), done)


def small_of(name: str) -> dict[str, Value]:
    """Codebooks and clusters as small as the models, where the preset has them."""
    config = presets.load(name).config
    return {key: value for key, value in SMALL.items() if obstacle(config, key, value) is None}


@pytest.mark.parametrize(("kind", "changes"), ALLOWED, ids=NAMES)
def test_mixtures_name_what_bounds_them(
    models: Models, done: set[str], kind: str, changes: dict[str, Value]
) -> None:
    for block in BLOCKS:
        config = assign(Config(), SMALL | changes | {"block": block})
        check(build_scorer(config, models[kind]).costs(), done)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_is_judged_at_its_own_tile_shape(models: Models, kind: str) -> None:
    """One roof for every shape left most of scoring unexplained: a tile of one row is no tile of eight."""
    names = []
    for block in BLOCKS:
        config = assign(Config(), {"model": KINDS[kind], "block": block})
        costs = build_scorer(config, models[kind]).costs()
        for cost in costs.values():
            assert any(term.kind == KERNEL for term in cost.terms or ()) or cost.unmodelled
        names.append({term.roof for term, _ in needed(costs.values()) if term.kind == KERNEL})
    one, sixteen = names
    assert one
    assert one.isdisjoint(sixteen)


def test_a_call_is_as_cold_as_the_stage_before_it_leaves_it(models: Models) -> None:
    """The exponentials of the N best come right after their selection, which looks at one frame's densities."""
    found = [calls(1, size)[0] for size in (1 << 10, 48 << 10, 1 << 30)]
    assert [term.bytes for term in found] == [1 << 10, 64 << 10, MOST_PASSED]
    assert {term.roof for term in found} == {KERNEL_CALL}
    assert calls(1) == calls(1, 1 << 30)
    changes = {"model": "ptm", "gmm.selection.method": "top-n", "gmm.selection.top_n": 2}
    for block in BLOCKS:
        config = assign(Config(), SMALL | changes | {"block": block})
        costs = build_scorer(config, models["tied"]).costs()
        (call,) = (term for term in costs["score.exp"].terms or () if term.kind == CALL)
        assert call == calls(1, costs["score.select"].working_set_bytes)[0]
        assert call.bytes < calls(1)[0].bytes


@pytest.mark.parametrize(("kind", "changes"), ALLOWED, ids=NAMES)
def test_laws_count_what_the_spans_record(
    models: Models, kind: str, changes: dict[str, Value]
) -> None:
    """No term counts for less than nothing, and none of the stages goes without work."""
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
        for term in costs[names[stage]].terms or ():
            counts = term.count.of(mine)
            assert (counts >= 0).all(), (names[stage], term)
            if term.most is not None:
                assert (term.most.of(mine) >= counts * (1 - 1e-9)).all(), (names[stage], term)
        assert sum(float(t.count.of(mine).sum()) for t in costs[names[stage]].terms or ()) > 0


def test_a_name_without_a_family_is_refused() -> None:
    with pytest.raises(KeyError):
        work_of("nothing of that name/16", 0)


def test_every_family_has_a_law_that_names_it(models: Models) -> None:
    """A family of the mixtures that no configuration names is dead."""
    found: set[str] = set()
    for kind, changes in ALLOWED:
        costs = build_scorer(assign(Config(), SMALL | changes), models[kind]).costs()
        found |= {term.roof.partition("/")[0] for term, _ in needed(costs.values())}
    assert set(FAMILIES) - found <= OTHERS


OTHERS = frozenset({*nets.FAMILIES, *frontend.FAMILIES, *search.FAMILIES})
"""Families that no law of mixtures names: those of nets and of the search."""


def numbers_written_out() -> Iterator[str]:
    """Calls of kernels in compiled functions of the roofs of scoring that pass a number written out, or by its name."""
    names = [m.name for m in pkgutil.walk_packages(scoring.__path__, f"{scoring.__name__}.")]
    for name in names:
        if not name.rpartition(".")[2].startswith("roofs"):
            continue
        module = import_module(name)
        kernels = [f for f in vars(module).values() if isinstance(f, Dispatcher)]
        for function in [f for f in kernels if f.py_func.__module__ == name]:
            for call in ast.walk(ast.parse(inspect.getsource(function.py_func))):
                if not isinstance(call, ast.Call):
                    continue
                called = vars(module)
                for part in ast.unparse(call.func).split("."):
                    called = (
                        called.get(part)
                        if isinstance(called, dict)
                        else getattr(called, part, None)
                    )
                written = (
                    a.value
                    if isinstance(a, ast.Constant)
                    else vars(module).get(getattr(a, "id", ""))
                    for a in call.args
                )
                if isinstance(called, Dispatcher) and any(type(value) is int for value in written):
                    yield f"{name}: {ast.unparse(call)}"


def test_roofs_time_the_kernels_that_score() -> None:
    """numba compiles a kernel anew for a number that a compiled caller writes out: that is not the one that scores."""
    assert list(numbers_written_out()) == []
