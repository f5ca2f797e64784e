"""Models that the tests of scoring share, small ones and a real one."""

import pytest
import sphinx_writer as writer
from selection_reference import family_of

from pipelines.models import continuous, sphinx
from pipelines.run import beside
from pipelines.run.roofs_again import RoofsAgain
from profiler.machine.roofs import cpu


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    real = sphinx.load(sphinx.default_directory())
    return {
        "tied": sphinx.load(writer.write_model(folder / "tied", 4, 40)),
        "three streams": sphinx.load(writer.write_continuous(folder / "three", 3, 11)),
        "one stream": sphinx.load(writer.write_continuous(folder / "one", 1, 20)),
        "untied": continuous.untied(real, 12),
        "real": real,
    }


@pytest.fixture(scope="module")
def families(models):
    return {name: family_of(model) for name, model in models.items()}


@pytest.fixture(autouse=True)
def short_runs(monkeypatch):
    """Runs measure the machine only before they begin: more than half of a run of a few seconds went into it.

    What times roofs on, and again at the end, is tested by itself (`test_roofs_again`, `test_machine`) and in the
    runs of the command line.
    """
    monkeypatch.setattr(beside, "RoofsAgain", untimed)
    monkeypatch.setattr(cpu, "recheck", lambda roof_table, threads=1: roof_table)


def untimed(recorder, lane, journal, probe, share):
    return RoofsAgain(recorder, lane, journal, probe, share=0.0)
