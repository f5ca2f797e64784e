"""What all labs have in common: card, verdict rule, figures, chart, session, small run. See `contract`."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator

import msgspec
import pytest

from pipelines import labs
from pipelines.config.options import options_of
from pipelines.labs import record
from pipelines.labs.chart import Bars, Chart, Line, StackedBars
from pipelines.labs.declaration import GROUPS
from pipelines.labs.verdicts import Verdict
from profiler.errors import Cancelled
from tests.labs.contract import Changes, Contract

NAMES = labs.names()


def contract_of(name: str) -> Contract:
    found = importlib.import_module(f"tests.labs.test_lab_{name.replace('-', '_')}").CONTRACT
    assert isinstance(found, Contract)
    return found


CONTRACTS = {name: contract_of(name) for name in NAMES}
SMALL = [name for name, contract in CONTRACTS.items() if contract.small is not None]
every_lab = pytest.mark.parametrize("name", NAMES)
small_run = pytest.mark.parametrize("name", SMALL)


def cases() -> Iterator[tuple[str, Verdict, Changes]]:
    for name, contract in CONTRACTS.items():
        for verdict, changes in contract.verdicts.items():
            for change in changes:
                yield name, verdict, change


@every_lab
def test_a_card_says_everything(name: str) -> None:
    lab = labs.load(name)
    assert lab is CONTRACTS[name].lab
    assert lab.group in GROUPS
    assert lab.claim.endswith(".")
    assert lab.source.startswith("note ")
    # Where the bound comes from: the claim itself, a paper, or ourselves.
    assert re.search(r"\bclaim\b|\bours\b|\(.+ \d{4}", lab.bound), lab.bound
    assert {"holds here", "does not hold here"} <= set(lab.follows)
    assert lab.bytes_needed(lab.parameters) >= 0
    for option in options_of(type(lab.parameters)):
        assert option.title
        assert option.help.endswith(".")


@pytest.mark.parametrize(("name", "verdict", "change"), list(cases()))
def test_the_rule_finds_what_was_planted(name: str, verdict: Verdict, change: Changes) -> None:
    contract = CONTRACTS[name]
    finding = contract.lab.judge(contract.planted(**change))
    assert finding.verdict == verdict, finding.why
    assert finding.why.endswith(".")
    assert verdict in contract.lab.follows


@every_lab
def test_a_claim_is_tried_both_ways(name: str) -> None:
    assert CONTRACTS[name].true
    assert CONTRACTS[name].false


@every_lab
def test_figures_follow_from_what_was_planted(name: str) -> None:
    contract = CONTRACTS[name]
    figures = contract.lab.judge(contract.planted()).figures
    assert {key: figures[key] for key in contract.figures} == contract.figures
    assert {value.ours for value in contract.lab.published} <= set(figures)


@every_lab
def test_what_was_planted_can_be_drawn(name: str) -> None:
    contract = CONTRACTS[name]
    for changes in contract.verdicts.values():
        chart = contract.lab.picture(contract.planted(**changes[0]))
        for panel in (chart, *chart.beside):
            fits(panel)


def fits(panel: Chart) -> None:
    """Every layer has as many values as places, and as many ends of intervals, or none."""
    assert panel.layers
    for layer in panel.layers:
        if isinstance(layer, Bars):
            assert len(layer.values) == len(panel.x.categories)
            values = layer.values
        elif isinstance(layer, Line):
            assert len(layer.x) == len(layer.y)
            values = layer.y
        else:
            if isinstance(layer, StackedBars):
                assert {len(each) for _, each in layer.parts} == {len(panel.x.categories)}
            continue
        assert len(layer.low) == len(layer.high)
        assert len(layer.low) in (0, len(values))
        for low, value, high in zip(layer.low, values, layer.high, strict=False):
            assert value is None or low is None or high is None or low <= value <= high


@every_lab
def test_a_session_gives_back_result_and_verdict(name: str) -> None:
    contract = CONTRACTS[name]
    result = contract.planted()
    finding = contract.lab.judge(result)
    fact = record.stored(name, contract.lab.parameters, result, finding)
    read = record.read({record.KEY: json.loads(msgspec.json.encode(fact))})
    assert read is not None
    assert read.measured == result
    assert read.finding == finding
    assert read.chart is not None


@every_lab
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, over no numbers
def test_a_strangers_result_breaks_nothing(name: str) -> None:
    """Whatever a field of it is, or of its timings: it is no lab, or it is one."""
    contract = CONTRACTS[name]
    fact = record.stored(name, contract.lab.parameters, contract.planted())
    measured = json.loads(msgspec.json.encode(fact))["measured"]
    changed = [measured | {key: wrong} for key in measured for wrong in ("text", {}, [])]
    if seconds := measured.get("timings", {}).get("seconds"):
        for rows in ({}, {"1": []}, {"1": [0.0]}, {"0": [1.0, 1.0, 1.0]}):
            changed += [
                measured | {"timings": {"seconds": seconds | {variant: rows}}}
                for variant in [*seconds][:2]
            ]
    for some in changed:
        run = record.read({record.KEY: {**fact, "measured": some}})
        assert run is None or run.chart is None or run.chart.layers


@pytest.mark.parametrize("name", [name for name in NAMES if CONTRACTS[name].memory])
def test_more_takes_more_memory(name: str) -> None:
    contract = CONTRACTS[name]
    assert contract.memory is not None
    less, more = map(contract.lab.bytes_needed, contract.memory)
    assert 0 < less < more


@small_run
def test_a_small_run_is_judged_and_drawn(name: str) -> None:
    contract = CONTRACTS[name]
    assert isinstance(contract.measured, contract.lab.stored)
    assert contract.lab.judge(contract.measured).why
    fits(contract.lab.picture(contract.measured))


@small_run
def test_a_run_that_is_stopped_ends(name: str) -> None:
    contract = CONTRACTS[name]
    desk = contract.desk()
    desk._asked = lambda: True
    with pytest.raises(Cancelled):
        contract.lab.measure(contract.small, desk)
