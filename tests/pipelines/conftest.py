"""Models that the tests of scoring share, small ones and a real one."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
import sphinx_writer as writer
from scoring_reference import family_of

from pipelines.audio import collecting
from pipelines.config import Config
from pipelines.models import derived, foreign, sphinx
from pipelines.models.ctc import opening
from pipelines.models.sphinx import AcousticModel
from profiler.arrays import F32
from profiler.errors import Cancelled
from tests.pipelines import whole_runs
from tests.pipelines.whole_runs import QUICK
from tests.short_runs import shorten


@pytest.fixture(scope="session")
def model() -> AcousticModel:
    return whole_runs.model()


@pytest.fixture(scope="session")
def quick() -> Config:
    """The settings of the preset with the smallest graph."""
    return QUICK


@pytest.fixture(scope="session")
def tied(tmp_path_factory: pytest.TempPathFactory) -> AcousticModel:
    """A small one of four codebooks."""
    return sphinx.load(writer.write_model(tmp_path_factory.mktemp("tied"), 4, 5))


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    real = whole_runs.model()
    return {
        "tied": sphinx.load(writer.write_model(folder / "tied", 4, 40)),
        "three streams": sphinx.load(writer.write_continuous(folder / "three", 3, 11)),
        "one stream": sphinx.load(writer.write_continuous(folder / "one", 1, 20)),
        "untied": derived.untied(real, 12),
        "real": real,
    }


@pytest.fixture(scope="session")
def families(models):
    return {name: family_of(model) for name, model in models.items()}


@pytest.fixture(autouse=True)
def short_runs(monkeypatch):
    shorten(monkeypatch)


@pytest.fixture(autouse=True)
def nets_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of nets are read in this process, which takes a tenth of the time of one of their own.

    That one and its bounds are tried in `test_models_foreign`, by labs and by the command line.
    """
    monkeypatch.setattr(foreign, "run_child", read_here)


def read_here(module: str, path: Path, arguments: list[str], cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise Cancelled
    if module != foreign.__name__:
        opening._read(path.absolute(), Path(arguments[-1]))
        return
    _, senones, dimension, frames, target = arguments
    foreign._open(path.absolute(), int(senones), int(dimension), int(frames), Path(target))


@pytest.fixture(scope="module")
def short(bundled_speech: Path) -> Path:
    return bundled_speech / "08-kal16-short.flac"


@pytest.fixture(scope="session")
def spoken_scores(bundled_speech: Path, request: pytest.FixtureRequest) -> list[F32]:
    """Scores of two utterances: of people, where their speech lies next to the checkout."""
    from search_graphs import scores_of

    paths = collecting.collect([str(bundled_speech)])[:2]
    with contextlib.suppress(pytest.skip.Exception):
        folder = request.getfixturevalue("shared_audio")
        paths = [folder / "librivox-0870.flac", folder / "goforward.flac"]
    return [scores_of(path) for path in paths]


@pytest.fixture(scope="session")
def files(bundled_speech: Path) -> list[Path]:
    """A long sentence, and "yes of course"."""
    return [bundled_speech / "01-slt-morning.flac", bundled_speech / "08-kal16-short.flac"]
