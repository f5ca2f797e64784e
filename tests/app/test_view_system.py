"""Readings of the machine on lanes, and memory by component: which frames each is of, and what is said without any."""

from pathlib import Path

import numpy as np
import pytest
from sample_session import Sample
from views_desk import amount, opened, pixels, seek, view_on

from app.model import memory
from app.style.theme import theme
from app.views.lanes_model import ALL_CPU, AVAILABLE, PACKAGE, RSS, Curve, LanesModel
from app.views.memory_use import COLORS, COMPONENTS, memory_use_model
from app.views.system import CPU, SystemView, system_model
from profiler.analysis.lod.spans import timeline_of
from profiler.machine.memory import sample_name
from profiler.session.reader import Session

FRAMES = 512
ALL = (0.0, FRAMES * 0.01)
AT = (100, 300, 500)  # Frames at which readings were taken, besides one before the first frame
LOAD, BYTES, WATTS = (10.0, 100.0, 50.0, 150.0), (1e9, 2e9, 3e9, 4e9), 25.0
MB = 1e6
USED = {"files": 100.0, "libraries": 150.0, "model": 50.0, "graph": 20.0, "frontend": 1.0, "recorder": 4.0}
"""MB; besides, there are tokens, and never a lattice."""
TOKENS, PEAKS = (5.0, 30.0, 10.0, 10.0), (400.0, 400.0, 420.0, 420.0)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    sample = Sample(tmp_path_factory.mktemp("system") / "a.asrs", frames=FRAMES)
    sample.write()
    with Session.open(sample.path) as session:
        times = timeline_of(session).ns_at(np.array((0, *AT)))
    times[0] -= 1e9
    for t, load, size, tokens, peak in zip(times.tolist(), LOAD, BYTES, TOKENS, PEAKS, strict=True):
        values = {CPU: load, ALL_CPU: load / 2, RSS: size, AVAILABLE: float("nan")}
        values |= {f"energy.package-{n}_joules": WATTS / 2 * (t - times[0]) * 1e-9 for n in (0, 1)}
        values |= {f"gpu{n}.busy_percent": load / 2 + n for n in (0, 1)}
        used = {**USED, "tokens": tokens, "lattice": 0.0, "peak": peak, "device": 64.0}
        values |= {sample_name(name): MB * megabytes for name, megabytes in used.items()}
        sample.writer.sample(int(t), values)
    sample.writer.meta("memory", {"reserved": {"tokens": 90_000_000}, "mappings": {"heap": 1000, "numpy": 7}})
    return sample.close()


def model_of(path: Path, columns: int, counted: tuple[int, int] = (0, FRAMES)) -> LanesModel:
    with opened(path) as (session, track):
        session.meta["machine"] = {"cores": {"logical": 4}}
        session.meta["devices"] = {"cuda": {"nvml": "gpu1"}}
        return system_model(session, track, FRAMES, ALL, columns, counted=counted)


def curve(model: LanesModel, name: str) -> Curve:
    (found,) = (one for one in model.curves if one.name == name)
    return found


def test_a_load_is_of_the_frames_before_its_reading_and_an_amount_of_those_after(path):
    model = model_of(path, FRAMES)
    names = [[one.name for one in panel.curves] for panel in model.panels]
    assert names == [[CPU, ALL_CPU], [RSS], [PACKAGE], ["gpu1.busy_percent"]]
    middles = [50, 200, 400, 506]
    load = curve(model, CPU)
    assert load.mean[middles] == pytest.approx([100, 50, 150, np.nan], nan_ok=True)
    assert load.whole == 400
    assert curve(model, RSS).mean[middles] == pytest.approx(BYTES)
    assert curve(model, PACKAGE).mean[middles] == pytest.approx([WATTS, WATTS, WATTS, np.nan], nan_ok=True, rel=1e-4)
    # Of all four cores: half of 100 % is two of them.
    assert curve(model, ALL_CPU).mean[50] == pytest.approx(200)
    assert curve(model, "gpu1.busy_percent").mean[50] == pytest.approx(51)
    assert model.scales["gpu1.busy_percent"].top == 100


def test_a_column_of_several_readings_has_their_range_and_mean(path):
    load = curve(model_of(path, 2), CPU)
    assert curve(model_of(path, 64, (0, 200)), CPU).average == pytest.approx(75, rel=1e-3), "of the scope"
    assert load.low.tolist() == [50, 50]
    assert load.high.tolist() == [100, 150]
    assert load.mean == pytest.approx([(100 * 100 + 156 * 50) / 256, (44 * 50 + 200 * 150) / 244], rel=1e-3)


def test_a_component_of_memory_holds_until_the_next_reading(path):
    with opened(path) as (session, track):
        model = memory_use_model(session, track, FRAMES, ALL, FRAMES)
        tokens = model.layers_mb[:, COMPONENTS.index("tokens")]
        assert tokens[[50, 200, 400, 506]] == pytest.approx(TOKENS)
        assert model.layers_mb[200].sum() == pytest.approx(355)
        assert model.scale.top == 400
        assert model.resident == pytest.approx(335 * MB)
        assert model.latest["device"] == 64 * MB
        # Up to a cursor, as if nothing came after it.
        early = memory_use_model(session, track, 150, ALL, FRAMES)
        assert early.resident == pytest.approx(355 * MB)
        assert np.isnan(early.layers_mb[200]).all()
        assert early.column_at(2.0) is None


def test_the_view_shows_readings_with_units_and_the_layers_of_memory(path, qapp, qtbot):
    with view_on(SystemView, path, qtbot) as (view, playhead):
        lines = {line.name: line.value for line in view.readout(view.model(), 2.0)}
        for name, value in (("CPU", "50 %"), ("resident memory", "2 GB")):
            assert lines[f"{name} of the process"] == value
        assert lines["processor power"] == "25 W"
        headers, rows = view.table()
        assert rows[0][list(headers).index("resident memory of the process, MB")] == "1000"
        assert "resident memory of the process" in view.summary()
        view.pages["memory-use"].click()
        assert not view.memory.legend.isHidden()
        seek(playhead, FRAMES)
        picture = pixels(view.plot)
        shown = {name: amount(picture, theme().category[COLORS[name]]) for name in COMPONENTS}
        assert shown["libraries"] > shown["files"] > shown["model"] > shown["graph"] > shown["tokens"] > 0
        assert shown["libraries"] == pytest.approx(1.5 * shown["files"], rel=0.1)
        assert shown["lattice"] == 0
        lines = [(line.name, line.value) for line in view.readout(view.model(), 2.0)]
        assert lines[3] == ("tokens and histories", "30 MB")
        assert lines[-2:] == [("files of libraries", "100 MB"), ("resident", "355 MB")]
        headers, rows = view.table()
        assert list(headers)[2:4] == ["resident MB", "files of libraries MB"]
        assert (rows[0][2:4], rows[-1][2]) == (["330.0", "100.0"], "335.0")
        assert view.summary().startswith("In the end 335 MB are resident: Python and libraries 150 MB, ")
        assert "at most 400 MB during set-up, 420 MB in all; too little audio" in view.summary()
        assert "335 MB resident" in view.note
        assert view.memory.legend._titles[COLORS["graph"]] == "search graph 20 MB"
        assert view.memory.legend._titles[COLORS["lattice"]] == "lattice"
        assert "energy unknown: the power of the idle machine" in view.memory.cost.full
        view.pages["memory-use"].click()
        assert view.memory.legend.isHidden()
        assert view.model().panels[0].curves[0].name == CPU
        assert amount(pixels(view.plot), theme().category[COLORS["libraries"]]) == 0


def test_a_session_without_readings_says_so(sample, qapp, qtbot):
    with view_on(SystemView, sample, qtbot) as (view, playhead):
        assert view.note == view.summary() == "This session has no readings of the machine."
        assert view.table()[1] == []
        seek(playhead, 100)
        assert view.model() is not None
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
    memory_line, cost_line = memory.lines({"memory": tree, "cost": cost})
    assert memory_line.startswith("memory: 335 MB resident (Python and libraries 150 MB, ")
    assert ", 64 MB on the device; at most 400 MB during set-up" in memory_line
    assert "core-seconds" in cost_line


def test_growth_and_energy_in_words():
    for likely, low, high, text in (
        (2.5, 2.04, 3.1, "growth per hour of audio 2.5 MB (95 %: 2.0 MB to 3.1 MB)"),
        (0.2, -0.04, 0.3, "no growth per hour of audio (95 %: 0 MB to 0.3 MB)"),
        (-5.0, -6.0, -4.0, "decline per hour of audio 5.0 MB (95 %: −6.0 MB to −4.0 MB)"),
    ):
        assert memory.growth_text({"likely": MB * likely, "low": MB * low, "high": MB * high}) == text
    known = {"core_s_per_audio_hour": 1800.4, "joules_per_audio_hour": 5321.2, "idle_watts": 12.34, "energy": "RAPL"}
    assert memory.cost_lines(known) == [
        "cost per hour of audio: 1800 core-seconds, 5321 J of the processor package beyond its 12.3 W when idle"
    ]
