"""Memory by component over audio time: layers, texts and table, from readings with known numbers."""

import numpy as np
import pytest
from sample_session import Sample
from views_desk import amount, opened, pixels, seek, view_on

from app.model import memory
from app.style.theme import theme
from app.views.memory_use import COLORS, COMPONENTS, memory_use_model
from app.views.system import SystemView
from profiler.analysis.lod.spans import timeline_of
from profiler.machine.memory import sample_name
from profiler.session.reader import Session

FRAMES = 512
AT = (0, 200, 400)
MB = 1e6
USED = {"files": 100.0, "libraries": 150.0, "model": 50.0, "graph": 20.0, "frontend": 1.0, "recorder": 4.0}
"""MB; at the second reading the tokens take 30 and at the third 10, and there never is a lattice."""
TOKENS = (5.0, 30.0, 10.0)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    sample = Sample(tmp_path_factory.mktemp("memory") / "a.asrs", frames=FRAMES)
    sample.write()
    with Session.open(sample.path) as session:
        times = timeline_of(session).ns_at(np.array(AT))
    for t, tokens, peak in zip(times.tolist(), TOKENS, (400.0, 400.0, 420.0), strict=True):
        used = {**USED, "tokens": tokens, "lattice": 0.0, "peak": peak, "device": 64.0}
        values = {sample_name(name): MB * size for name, size in used.items()}
        sample.writer.sample(int(t), values | {"process.cpu_percent": 50.0})
    sample.writer.meta("memory", {"reserved": {"tokens": 90_000_000}, "mappings": {"heap": 1000, "numpy": 7}})
    sample.writer.meta("energy", {"text": "there is no RAPL here"})
    return sample.close()


def test_a_reading_holds_until_the_next_one(path):
    with opened(path) as (session, track):
        model = memory_use_model(session, track, FRAMES, (0.0, FRAMES * 0.01), FRAMES)
        tokens = model.layers_mb[:, COMPONENTS.index("tokens")]
        assert tokens[[100, 300, 450]] == pytest.approx(TOKENS)
        assert model.layers_mb[300].sum() == pytest.approx(355)
        assert model.scale.top == 400
        assert model.resident == pytest.approx(335 * MB)
        assert model.latest["device"] == 64 * MB
        # Up to a cursor, as if nothing came after it.
        early = memory_use_model(session, track, 250, (0.0, FRAMES * 0.01), FRAMES)
        assert early.resident == pytest.approx(355 * MB)
        assert np.isnan(early.layers_mb[300]).all()
        assert early.column_at(3.0) is None


def test_the_view_shows_the_layers(path, qapp, qtbot):
    with view_on(SystemView, path, qtbot) as (view, playhead):
        memory_use = view.memory
        assert memory_use.legend.isHidden()
        view.pages["memory-use"].click()
        assert not memory_use.legend.isHidden()
        seek(playhead, FRAMES)
        picture = pixels(view.plot)
        shown = {name: amount(picture, theme().category[COLORS[name]]) for name in COMPONENTS}
        assert shown["libraries"] > shown["files"] > shown["model"] > shown["graph"] > shown["tokens"] > 0
        assert shown["libraries"] == pytest.approx(1.5 * shown["files"], rel=0.1)
        assert shown["lattice"] == 0
        model = view.model()
        assert model.panels == ()
        lines = [(line.name, line.value) for line in view.readout(model, 3.0)]
        assert (lines[0][0], len(lines)) == ("0:03.00", 9)
        assert lines[3] == ("tokens and histories", "30 MB")
        assert lines[-2:] == [("files of libraries", "100 MB"), ("resident", "355 MB")]
        headers, rows = view.table()
        assert list(headers)[2:4] == ["resident MB", "files of libraries MB"]
        assert rows[0][2:4] == ["330.0", "100.0"]
        assert rows[-1][2] == "335.0"
        assert view.summary().startswith(
            "In the end 335 MB are resident: Python and libraries 150 MB, files of libraries 100 MB, acoustic model "
            "50 MB; at most 400 MB during set-up, 420 MB in all; too little audio to tell whether it grows. Cost per"
        )
        assert "335 MB resident" in view.note
        assert memory_use.legend._titles[COLORS["graph"]] == "search graph 20 MB"
        assert memory_use.legend._titles[COLORS["lattice"]] == "lattice"
        assert memory_use.cost.full.endswith("energy unknown: there is no RAPL here")
        view.pages["memory-use"].click()
        assert memory_use.legend.isHidden()
        assert [panel.curves[0].name for panel in view.model().panels] == ["process.cpu_percent"]
        assert amount(pixels(view.plot), theme().category[COLORS["libraries"]]) == 0


def test_a_session_without_readings_says_so(sample, qapp, qtbot):
    with view_on(SystemView, sample, qtbot) as (view, playhead):
        view.pages["memory-use"].click()
        assert view.note == view.summary() == "This session has no readings of the memory by component."
        assert view.table()[1] == []
        playhead.close()
        assert view.model() is None


def test_the_report_has_the_same_figures(path):
    with Session.open(path) as session:
        tree, cost = memory.memory(session), memory.cost(session)
    assert tree["resident_bytes"] == pytest.approx(335 * MB)
    assert (tree["peak_at_load_bytes"], tree["peak_bytes"]) == (400 * MB, 420 * MB)
    tokens = tree["components"]["tokens"]
    assert (tokens["used_bytes"], tokens["most_bytes"], tokens["reserved_bytes"]) == (10 * MB, 30 * MB, 90 * MB)
    assert tree["components"]["device"]["used_bytes"] == 64 * MB
    assert tree["mappings"] == {"heap": 1000, "numpy": 7}
    assert cost["joules_per_audio_hour"] is None
    memory_line, cost_line = memory.lines({"memory": tree, "cost": cost})
    assert memory_line.startswith("memory: 335 MB resident (Python and libraries 150 MB, files of libraries 100 MB,")
    assert ", 64 MB on the device; at most 400 MB during set-up" in memory_line
    assert "core-seconds" in cost_line


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((2.5, 2.04, 3.1), "growth per hour of audio 2.5 MB (95 %: 2.0 MB to 3.1 MB)"),
        ((0.2, -0.04, 0.3), "no growth per hour of audio (95 %: 0 MB to 0.3 MB)"),
        ((-5.0, -6.0, -4.0), "decline per hour of audio 5.0 MB (95 %: −6.0 MB to −4.0 MB)"),
    ],
)
def test_growth_in_words(ends, text):
    slope = dict(zip(("likely", "low", "high"), (MB * end for end in ends), strict=True))
    assert memory.growth_text(slope) == text


def test_energy_in_words():
    known = {"core_s_per_audio_hour": 1800.4, "joules_per_audio_hour": 5321.2, "idle_watts": 12.34, "energy": "RAPL"}
    assert memory.cost_lines(known) == [
        "cost per hour of audio: 1800 core-seconds, 5321 J of the processor package beyond its 12.3 W when idle"
    ]
