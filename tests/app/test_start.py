"""The start of a run as a waterfall."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from views_desk import view_on

from app.views import session_info
from app.views.session_info import LIBRARIES, SessionView, longest, phases
from profiler.spans import SPAN
from tests.each import each

STAGES = ("setup.roofs", "setup.graph", "setup.replay", "decode.block")
S = 1_000_000_000
COMMAND = {"argv": ["asrscope", "run"], "created_wall": 102.0, "writer": {"started": 100.5}}


def session(*spans: tuple[str, float, float], **meta: Any) -> Any:
    """A session with these spans: stage, first second, seconds."""
    rows = np.zeros(len(spans), SPAN)
    for row, (name, begin, seconds) in zip(rows, spans, strict=True):
        row["stage"], row["start_ns"], row["duration_ns"] = STAGES.index(name), begin * S, seconds * S
    stages = {number: SimpleNamespace(name=name) for number, name in enumerate(STAGES)}
    return SimpleNamespace(spans=rows, stages=stages, meta=meta)


RUN = (
    ("setup.roofs", 10.0, 2.0),
    ("setup.graph", 12.0, 5.0),
    ("decode.block", 17.0, 0.5),
    ("setup.replay", 17.6, 0.1),
    ("decode.block", 18.0, 0.5),
)


def test_the_start_of_a_command_has_its_libraries_and_ends_with_the_first_block():
    steps = phases(session(*RUN, **COMMAND))
    assert steps[0] == (LIBRARIES, 0.0, 1.5)
    times = [(round(one.begin_s, 6), round(one.end_s, 6)) for one in steps[1:]]
    assert times == [(1.5, 3.5), (3.5, 8.5), (8.5, 9.0)]
    assert "graph" in longest(steps).title
    assert phases(session(*RUN[:2], **COMMAND)) == (), "before the first block nothing is known"


@each("lacks", [{"argv": ["worker.py"]}, {"argv": None}, {"writer": {}}, {"created_wall": None}])
def test_where_the_process_did_not_start_for_the_run_set_up_begins_at_nothing(lacks):
    steps = phases(session(*RUN, **COMMAND | lacks))
    assert steps[0].begin_s == 0.0
    assert LIBRARIES not in {one.title for one in steps}


def test_the_view_shows_the_steps(sample, qapp, qtbot, monkeypatch):
    steps = phases(session(*RUN, **COMMAND))
    monkeypatch.setattr(session_info, "phases", lambda _session: steps)
    with view_on(SessionView, sample, qtbot, (500, 260)) as (view, _playhead):
        assert view.start.chart is None, "it is made when it is first seen"
        view.pages["start"].click()
        assert view.start.steps == steps
        (panel,) = view.start.chart.each
        assert panel.chart.y.categories == tuple(f"{one.title} · {one.seconds:.2f} s" for one in steps)
        assert view.summary().startswith("The first block was decoded after 9.00 s; build or load")
        assert [row[3] for row in view.table()[1]] == ["1.500", "2.000", "5.000", "0.500"]
        assert view.note == "since the process began"
        view.show_table(False)
        assert view.start.isVisible(), "there was no table in its place"
        view.clear()
        assert view.start.chart is None
        assert view.summary() == "No frame is decoded yet."
