"""Readings of the machine on lanes: which frames each of them is of, and what is said without any."""

from pathlib import Path

import numpy as np
import pytest
from sample_session import Sample
from views_desk import opened, seek, view_on

from app.views.lanes_model import ALL_CPU, AVAILABLE, PACKAGE, RSS, Curve, LanesModel
from app.views.system import CPU, SystemView, system_model
from profiler.analysis.lod.spans import timeline_of
from profiler.session.reader import Session

FRAMES = 512
AT = (100, 300, 500)
"""Frames at which readings were taken, besides one before the first frame."""
LOAD, BYTES, WATTS = (10.0, 100.0, 50.0, 150.0), (1e9, 2e9, 3e9, 4e9), 25.0


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    sample = Sample(tmp_path_factory.mktemp("system") / "a.asrs", frames=FRAMES)
    sample.write()
    with Session.open(sample.path) as session:
        times = timeline_of(session).ns_at(np.array((0, *AT)))
    times[0] -= 1e9
    for t, load, size in zip(times.tolist(), LOAD, BYTES, strict=True):
        values = {CPU: load, ALL_CPU: load / 2, RSS: size, AVAILABLE: float("nan")}
        values |= {f"energy.package-{n}_joules": WATTS / 2 * (t - times[0]) * 1e-9 for n in (0, 1)}
        values |= {f"gpu{n}.busy_percent": load / 2 + n for n in (0, 1)}
        sample.writer.sample(int(t), values)
    return sample.close()


def model_of(path: Path, columns: int, counted: tuple[int, int] = (0, FRAMES)) -> LanesModel:
    with opened(path) as (session, track):
        session.meta["machine"] = {"cores": {"logical": 4}}
        session.meta["devices"] = {"cuda": {"nvml": "gpu1"}}
        return system_model(session, track, FRAMES, (0.0, FRAMES * 0.01), columns, counted=counted)


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


def test_the_view_shows_them_with_units(path, qapp, qtbot):
    with view_on(SystemView, path, qtbot) as (view, _):
        lines = {line.name: line.value for line in view.readout(view.model(), 2.0)}
        named = ("CPU of the process", "resident memory of the process", "processor power")
        assert [lines[name] for name in named] == ["50 %", "2 GB", "25 W"]
        headers, rows = view.table()
        assert rows[0][list(headers).index("resident memory of the process, MB")] == "1000"
        assert "resident memory of the process" in view.summary()


def test_a_session_without_readings_says_so(sample, qapp, qtbot):
    with view_on(SystemView, sample, qtbot) as (view, playhead):
        assert view.note == view.summary() == "This session has no readings of the machine."
        assert view.table()[1] == []
        seek(playhead, 100)
        assert view.model() is not None
