"""Sessions from Python: the same figures as the command line, and the page and the notebook as they are read."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import answer
from sample_session import write_sample

from app.api import compare, open_session
from profiler.errors import BadInput
from profiler.session.errors import SessionError

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def sample(tmp_path):
    return write_sample(tmp_path / "run.asrs", frames=1024)


def test_figures_are_those_of_the_command_line(sample):
    shown = answer("report", sample)["sessions"][0]
    with open_session(sample) as run:
        assert json.loads(json.dumps(run.report(), default=float)) == shown
        assert run.rtf == shown["rtf"]
        assert (run.word_errors.errors, run.word_errors.words) == (shown["wer_errors"], shown["wer_words"])
        assert run.frame_ms.sum() == pytest.approx(1e3 * shown["wall_s"])
        assert sum(run.category_ms.values()) == pytest.approx(run.frame_ms)
        for row in shown["stages"]:
            if row["group"] in ("scoring", "search"):
                assert run.stage_ms(row["name"]).sum() == pytest.approx(1e3 * row["time_s"], rel=1e-6)
        whole = run.statistics()
        assert whole is not None
        own = run.frame_ms - run.category_ms["other_programs"]
        assert whole.quantiles[2] == pytest.approx(np.percentile(own, 99))
        half = run.predict({"search": 0.5})
        saved = sum(row["time_s"] for row in shown["stages"] if row["group"] == "search") / 2
        assert (half.wall_ns - half.predicted_ns) * 1e-9 == pytest.approx(saved)
        with pytest.raises(BadInput, match="nonsense"):
            run.predict({"nonsense": 0.5})
    with pytest.raises(SessionError, match=r"none\.asrs"):
        open_session(sample.with_name("none.asrs"))


def test_spans_become_a_table(sample):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with open_session(sample) as run:
        table = run.spans_table()
        assert isinstance(table, pandas.DataFrame)
        assert len(table) == len(run.spans)
        emit = table[table["stage"] == "search.emit"]["duration_ns"].sum()
        assert emit * 1e-6 == pytest.approx(run.stage_ms("search.emit").sum())


def test_the_page_and_the_notebook_run(sample, monkeypatch, capsys):
    write_sample(sample.with_name("other.asrs"), frames=1024)
    monkeypatch.chdir(sample.parent)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "python.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        exec(block, names)
    assert "ns per token" in capsys.readouterr().out
    notebook = json.loads((DOCS / "python.ipynb").read_text("utf-8"))
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    said = capsys.readouterr().out
    assert "score." in said
    assert "search twice as fast: RTF" in said


def test_arms_are_compared_as_by_the_verb(sample):
    other = write_sample(sample.with_name("other.asrs"), frames=1024)
    verdict = answer("compare", sample, other)["overall"]
    with open_session(sample) as a, open_session(other) as b:
        found = compare(a, b).overall
    assert (found.verdict, found.ratio.ratio) == (verdict["verdict"], verdict["ratio"])
