"""Memory traffic by stage: bytes of the law over measured time, the measured ladder, the cache that a set fits into."""

import math
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from views_desk import FRAMES, settle, view_on

from app.views.memory_ladder import MEMORY, LadderModel, MemoryLadderView, ladder_model, level_of
from app.window.welcome import sample_sessions
from profiler.analysis.breakdown import breakdown
from profiler.session.reader import Session

KIB = 1024
CACHES = [(1, "data", 32 * KIB), (1, "instruction", 64 * KIB), (2, "unified", 1024 * KIB), (3, "unified", 65536 * KIB)]


def model_of(path: Path, first: int | None = None, last: int | None = None) -> LadderModel:
    with Session.open(path) as session:
        caches = [{"level": level, "type": kind, "bytes": size} for level, kind, size in CACHES]
        session.meta["machine"] = {"caches": caches}
        found = breakdown(session, first, last)
        return ladder_model(session, found.stages, found.last_frame - found.first_frame, 1)


def test_bytes_of_the_law_over_the_measured_time(sample):
    model = model_of(sample)
    (one,) = model.stages
    with Session.open(sample) as session:
        (number,) = (n for n, stage in session.stages.items() if stage.name == "score.gaussians")
        spans = session.spans[session.spans["stage"] == number]
        moved = 20e6 * len(spans) + 135.0 * int(spans["work0"].sum())
        (row,) = (one for one in breakdown(session).stages if one.name == "score.gaussians")
        seconds = row.own_ns * 1e-9
    assert one.name == "score.gaussians"
    assert one.frame_bytes == pytest.approx(moved / FRAMES)
    assert one.rate == pytest.approx(moved / seconds)
    # Between 97 GB/s at 1 MiB and 33 GB/s at 256 MiB.
    part = math.log(64e6 / 2**20) / math.log(256)
    assert one.bandwidth == pytest.approx(1 / ((1 - part) / 97e9 + part / 33e9))
    assert one.level == "L3"
    assert model.caches == (32 * KIB, 1024 * KIB, 65536 * KIB)
    assert model.ladders[0].rungs[0] == (1 << 14, 150e9)


def test_bytes_are_per_frame_of_the_stretch(sample):
    (whole,), (part,) = model_of(sample).stages, model_of(sample, 0, 512).stages
    assert part.frame_bytes > 1.5 * whole.frame_bytes, "all Gaussians were computed before selection came on"


@pytest.mark.parametrize(("size", "level"), [(1, "L1"), (32 * KIB, "L1"), (33 * KIB, "L2"), (1 << 30, MEMORY)])
def test_a_set_is_in_the_first_cache_that_it_fits_into(size, level):
    assert level_of(size, (32 * KIB, 1024 * KIB)) == level
    assert level_of(size, ()) == ""


def test_a_click_on_a_dot_chooses_its_stage(qapp, qtbot):
    with view_on(MemoryLadderView, sample_sessions()[-1], qtbot, (700, 400)) as (view, playhead):
        view.settle()
        assert view.summary().startswith("search.frames: ")
        assert [ladder.name for ladder in view.model().ladders] == ["NVIDIA H100 80GB HBM3", ""]
        mfcc = next(one for one in view.model().stages if one.name == "frontend.mfcc")
        assert mfcc.level == "L2"
        at = view.plot.place(mfcc.working_set, mfcc.rate).toPoint()
        qtbot.mouseClick(view.plot.viewport(), Qt.MouseButton.LeftButton, pos=at)
        settle()
        assert view.summary().startswith("frontend.mfcc: ")
        assert "working set 523 KiB (L2)." in view.summary()
        _, rows = view.table()
        names = [row[0] for row in rows]
        assert names.index("search.frames") < names.index("frontend.mfcc") < names.index("processor")
        shares = [one.rate / one.bandwidth for one in view.model().stages if one.bandwidth]
        assert np.max(shares) < 1
        playhead.close()
        assert view.model() == LadderModel()
        assert view.summary() == "No stage whose memory traffic is known yet."
