"""Models that the tests of scoring share, small ones and a real one."""

import pytest
import sphinx_writer as writer
from selection_reference import family_of

from pipelines.models import continuous, sphinx


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
