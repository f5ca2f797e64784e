"""Sessions that were recorded while every sweep had a shape of its own: they open with what they found then.

`tests/data/labs` holds the fact of such a session for each of these labs, recorded by the last build before.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.labs import record
from pipelines.labs._earlier_forms import FORMS

FACTS = Path(__file__).parents[1] / "data" / "labs"


def fact_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FACTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_every_form_has_a_session() -> None:
    assert sorted(path.stem for path in FACTS.glob("*.json")) == sorted(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_a_session_in_the_earlier_form_opens_with_what_it_found(name: str) -> None:
    fact = fact_of(name)
    assert "timings" not in fact["measured"]
    run = record.read({record.KEY: fact})
    assert run is not None
    assert run.finding is not None
    assert (run.finding.verdict, run.finding.why) == (fact["verdict"], fact["why"])
    assert set(run.finding.figures) == set(fact["figures"])
    for key, figure in run.finding.figures.items():
        then = fact["figures"][key]
        assert figure == (None if then is None else pytest.approx(then, rel=1e-9)), key
    assert run.chart is not None


@pytest.mark.parametrize("name", FORMS)
def test_a_strangers_session_in_the_earlier_form_is_no_lab(name: str) -> None:
    """Whatever is left out of it, or is of another type."""
    fact = fact_of(name)
    for key in fact["measured"]:
        for wrong in ("text", [["text"]], {"text": "text"}, {"a, b": [None]}):
            measured = fact["measured"] | {key: wrong}
            record.read({record.KEY: fact | {"measured": measured}})
        measured = {k: v for k, v in fact["measured"].items() if k != key}
        record.read({record.KEY: fact | {"measured": measured}})
    assert record.read({record.KEY: fact | {"measured": {}}}) is None
