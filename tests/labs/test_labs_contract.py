"""What all labs have in common: card, verdict rule, figures, chart, session, small run. See `contract`."""

import importlib
import json
import re
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from pipelines import labs
from pipelines.config.options import options_of
from pipelines.labs import _training, record
from pipelines.labs.chart import Bars, Chart, Line
from pipelines.labs.declaration import GROUPS
from pipelines.labs.verdicts import IMPOSSIBLE
from pipelines.training.parallel import launch
from pipelines.training.parallel import lessons as labelled
from profiler.errors import Cancelled
from tests.each import each
from tests.labs.contract import Contract
from tests.pipelines import workers_in_threads

CONTRACTS: dict[str, Contract] = {}
for group in ("kernels", "decoding", "nets", "caches", "device", "training"):
    CONTRACTS |= importlib.import_module(f"tests.labs.test_labs_{group}").CONTRACTS
CASES = [(name, *case) for name, contract in CONTRACTS.items() for case in contract.verdicts]
NETS_AND_OTHERS_OF_ONE_SIZE = {
    *("bandwidth-ladder", "compress-training", "device-mismatch", "lazy-outputs", "low-rank", "multi-frame"),
    *("simd-int8", "sparse", "teacher-student"),
}
every_lab = pytest.mark.parametrize("name", CONTRACTS)


def test_every_lab_has_a_contract():
    assert {name: contract.lab for name, contract in CONTRACTS.items()} == labs.every()


@every_lab
def test_a_card_says_everything(name):
    lab = CONTRACTS[name].lab
    assert lab.group in GROUPS
    assert lab.claim.endswith(".")
    assert lab.source.startswith(("note ", "CTC nets"))
    # Where the bound comes from: the claim itself, a paper, or ourselves.
    assert re.search(r"\bclaim\b|\bours\b|\(.+ \d{4}", lab.bound), lab.bound
    assert {"holds here", "does not hold here"} <= set(lab.follows)
    least, most = lab.parameters, lab.parameters
    for option in options_of(type(lab.parameters)):
        assert option.title
        assert option.help.endswith(".")
        if option.maximum is not None:
            least = structs.replace(least, **{option.key: option.minimum})
            most = structs.replace(most, **{option.key: option.maximum})
    less, more = lab.bytes_needed(least), lab.bytes_needed(most)
    assert (0 < less < more) == (name not in NETS_AND_OTHERS_OF_ONE_SIZE)
    assert less <= lab.bytes_needed(lab.parameters) <= more


@each("name, verdict, change", CASES)
def test_the_rule_finds_what_was_planted(name, verdict, change):
    contract = CONTRACTS[name]
    finding = contract.lab.judge(contract.planted(**change))
    assert finding.verdict == verdict, finding.why
    assert finding.why.endswith(".")
    assert contract.lab.follows_from(verdict) or verdict == IMPOSSIBLE


@every_lab
def test_figures_sentences_and_pictures_follow_from_what_was_planted(name):
    contract = CONTRACTS[name]
    for changes, wanted in (({}, contract.figures), *contract.more):
        figures = contract.lab.judge(contract.planted(**changes)).figures
        assert {key: figures[key] for key in wanted} == wanted
        assert {value.ours for value in contract.lab.published} <= set(figures)
    for changes, words in contract.said:
        assert words in contract.lab.judge(contract.planted(**changes)).why
    for _, changes in contract.verdicts:
        fits(contract.lab.picture(contract.planted(**changes)))
    if contract.drawn is not None:
        first = contract.lab.picture(contract.planted()).layers[0]
        assert (first.y if isinstance(first, Line) else first.values) == contract.drawn


def fits(chart: Chart) -> None:
    for panel in (chart, *chart.beside):
        assert panel.layers
        for layer in panel.layers:
            if isinstance(layer, Bars | Line):
                places, values = (panel.x.categories, layer.values) if isinstance(layer, Bars) else (layer.x, layer.y)
                assert len(places) == len(values)
                assert len(layer.low) == len(layer.high)
                assert len(layer.low) in (0, len(values))
                for low, value, high in zip(layer.low, values, layer.high, strict=False):
                    assert value is None or low is None or high is None or low <= value <= high


@every_lab
def test_a_session_gives_back_result_and_verdict(name):
    contract = CONTRACTS[name]
    result = contract.planted()
    finding = contract.lab.judge(result)
    fact = record.stored(name, contract.lab.parameters, result, finding)
    read = record.read({record.KEY: json.loads(msgspec.json.encode(fact))})
    assert (read.measured, read.finding) == (result, finding)
    assert read.chart is not None


@pytest.mark.slow
@every_lab
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, over no numbers
def test_a_strangers_result_breaks_nothing(name):
    contract = CONTRACTS[name]
    fact = record.stored(name, contract.lab.parameters, contract.planted())
    measured = json.loads(msgspec.json.encode(fact))["measured"]
    changed = [measured | {key: wrong} for key in measured for wrong in ("text", {}, [])]
    if seconds := measured.get("timings", {}).get("seconds"):
        for rows in ({}, {"1": []}, {"1": [0.0]}, {"0": [1.0, 1.0, 1.0]}):
            changed += [measured | {"timings": {"seconds": seconds | {variant: rows}}} for variant in [*seconds][:2]]
    for some in changed:
        run = record.read({record.KEY: {**fact, "measured": some}})
        assert run is None or run.chart is None or run.chart.layers


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, contract in CONTRACTS.items() if contract.small])
def test_a_small_run_is_judged_and_drawn_and_can_be_stopped(name, monkeypatch):
    contract = CONTRACTS[name]
    if contract.trains:
        monkeypatch.setattr(_training, "data", lambda desk: Path())
        monkeypatch.setattr(labelled, "read", lambda *_: workers_in_threads.lessons(context=7))
        monkeypatch.setattr(launch, "pieces", lambda job, *_: (piece for piece in workers_in_threads.run_job(job)))
    module = importlib.import_module(f"pipelines.labs.{name.replace('-', '_')}")
    for attribute, value in contract.patches.items():
        monkeypatch.setattr(module, attribute, value)
    measured = contract.lab.measure(contract.small, contract.desk())
    assert isinstance(measured, contract.lab.stored)
    assert contract.lab.judge(measured).why
    fits(contract.lab.picture(measured))
    contract.check(measured)
    if contract.stops and not contract.trains:
        desk = contract.desk()
        desk.stopping = lambda: True
        with pytest.raises(Cancelled):
            contract.lab.measure(contract.small, desk)
