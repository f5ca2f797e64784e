"""Counters from a real run to the report: what this machine has is counted, what it lacks is blank."""

from types import SimpleNamespace

import pytest
from command_line import answer, printed

from profiler.counting import COUNTED
from profiler.machine.counters import EVENTS, probe
from profiler.session.reader import Session


@pytest.mark.slow
def test_a_run_with_counters_tells_them_per_stage(bundled_speech, tmp_path):
    out, speech = tmp_path / "counted.asrs", bundled_speech / "08-kal16-short.flac"
    tree = answer("run", "--preset", "gmm-quick", "--audio", speech, "--set", "counters=true", "--out", out)
    assert [u["hypothesis"] for u in tree["utterances"]] == ["yes of course"]
    assert tree["config"]["counters"] is True
    here = [a.event.name for a in probe() if a.available]
    about = tree["counters"]
    assert about["read"] == here
    assert set(about["absent"]) == {event.name for event in EVENTS} - set(here)
    assert all(about["absent"].values())
    stages = {row["name"]: row for row in tree["stages"]}
    if not here:
        assert all(row["counters"] is None for row in stages.values())
        return
    assert about["ns_per_reading"] > 0
    gaussians = stages["score.gaussians"]
    assert set(gaussians["counters"]) == {COUNTED, *here}
    assert gaussians["counters_evidence"] == "A"
    # The readings enclose the stage; little lies between them beside it.
    assert gaussians["counters"][COUNTED] >= 0.95e9 * gaussians["time_s"]
    if "task_clock_ns" in here:
        assert 0 < gaussians["counters"]["task_clock_ns"] <= 1.01 * gaussians["counters"][COUNTED]
    # Every stage of the decode lane was counted, overhead and set-up apart.
    assert all(row["counters"] is not None for row in stages.values() if row["lane"] == "decode")
    with Session.open(out) as session:
        assert sum(t.value for t in session.counters.values() if t.name == COUNTED) >= 0.95e9 * tree["wall_s"]
    page = printed("show", out)
    assert "counted per stage" in page
    assert all(name in page for name in here)


FLOATS = SimpleNamespace(numel=lambda: 1000, element_size=lambda: 4, copy_=lambda source, non_blocking: None)
"""1 000 of them, as far as a copy looks at a tensor. (torch itself stays out of the desk's process.)"""


def test_a_run_on_a_device_tells_its_copies(tmp_path):
    from app.model.report import report
    from app.model.report_lines import remarks
    from pipelines.device import COPY, DeviceWork, HostDevice
    from profiler.session.writer import SessionWriter
    from profiler.spans import Recorder

    recorder = Recorder()
    with SessionWriter(tmp_path / "device.asrs", recorder, {}):
        lane = recorder.lane("decode", decode=True)
        work = DeviceWork(HostDevice(), recorder, lane)
        start = recorder.clock()
        work.upload(FLOATS, FLOATS, 0, 4, COPY)
        work.wait_for(work.mark(COPY), COPY)
        work.end_block(0, 4)
        lane.put(recorder.stage("decode.block", "decode"), start, recorder.clock(), 0, 4)
    with Session.open(tmp_path / "device.asrs") as session:
        tree = report(session)
    (row,) = tree["transfers"]
    assert row["stage"] == "transfer.to device"
    assert (row["bytes"], row["copies"], row["pinned_bytes"]) == (4000, 1, 0)
    assert row["bytes_per_s"] == pytest.approx(4000 / row["time_s"])
    # What the stream's thread did before the host came to wait for it was hidden.
    assert 0 <= row["overlapped"] <= 1
    assert tree["categories"]["hidden_s"] == pytest.approx(row["overlapped"] * row["time_s"])
    assert "transfer.to device (torch-cpu copy): 0.0 MB in 1 copy" in "\n".join(remarks(tree))


def test_counting_cannot_be_switched_while_running():
    from pipelines.config import ConfigError
    from pipelines.run.control import Control

    with pytest.raises(ConfigError, match="counters cannot change while a run goes on"):
        Control().ask("counters", True)
