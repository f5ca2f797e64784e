"""The roofline: dots where rate and intensity put them, under the roof of their own law; memory traffic by stage."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QLineF, QPointF, Qt
from PySide6.QtGui import QPainterPath
from views_desk import FRAMES, opened, select, settle, view_on

from app.charts.still import distance
from app.model.desk_snapshot import StageLine, stage_line
from app.model.time_axis import TimeAxis
from app.views.memory_ladder import MEMORY, LadderModel, MemoryLadderView, ladder_model, level_of
from app.views.roofline import RooflineView
from app.views.roofline_model import Level, Place, Point, cache_sizes, levels, place_of, points, rate
from app.views.roofline_plot import HEIGHT, Roofline, radius_of
from app.views.stage_panel import explanation
from app.views.work import WorkView, work_model
from app.window.welcome import sample_sessions
from profiler.analysis.breakdown import StageRow, breakdown, stages_under
from profiler.machine.roofs.table import BANDWIDTH, Roof, RoofTable
from profiler.session.reader import Session
from tests.app.sample_session import write_sample
from tests.app.text_geometry import faults, texts
from tests.each import each


def row(name: str, ms: float, flops: float, size: float, **more) -> StageRow:
    """A stage on a machine of 100 Gop/s and 50 GB/s: the ridge is at 2 operations per byte."""
    times = {"time_ns": ms * 1e6, "share": ms / 10, "arithmetic_ns": flops / 100, "traffic_min_ns": size / 50}
    done = {"calls": 1, "flops": flops, "bytes_min": size, "bytes_max": 3 * size, "working_set": 1e6}
    said = {"verdict": "undecided", "evidence": "C", "sentence": "It runs.", "work": {"frames": 1.0}}
    return StageRow(name=name, group=name.partition(".")[0], lane="decode", **(times | done | said | more))


def stage_lines(rows: list[StageRow], frames: int) -> tuple[StageLine, ...]:
    return tuple(stage_line(one, rows, one.own_ns, 1e-6 / frames, 4e6) for one in rows)


FRAME = [row("scoring.layer 1", 1.0, 2e6, 4e6), row("scoring.output", 3.0, 6e6, 12e6)]
BLOCK = [row("scoring.layer 1", 1.0, 32e6, 4e6), row("scoring.output", 3.0, 96e6, 12e6)]


@pytest.fixture
def drawn(qtbot):
    """A roofline of these points in a size."""

    def make(size: tuple[int, int], shown: Sequence[Point], *about: object) -> Roofline:
        made = Roofline()
        qtbot.addWidget(made)
        made.resize(*size)
        made.show_points(shown, *(about or (None,)))
        made.show()
        return made

    return make


def test_a_point_has_its_own_roof_and_ridge():
    output, layer = points(FRAME)
    assert (output.name, layer.name) == ("scoring.output", "scoring.layer 1")
    assert (output.intensity, output.min_intensity, output.ridge) == pytest.approx((0.5, 0.5 / 3, 2.0))
    assert (output.rate, output.roof) == pytest.approx((2e9, 25e9))
    assert (output.bandwidth, output.ceiling) == pytest.approx((50e9, 100e9))
    assert points(BLOCK)[0].roof == pytest.approx(100e9)
    unknown, nothing = row("search.a", 1.0, 2e6, 4e6, arithmetic_ns=None), row("score.copy", 1.0, 0.0, 4e6)
    assert points([unknown, nothing, row("search.small", 0.01, 2e6, 4e6)]) == (), "no figures, or no weight"


def test_dots_lie_on_logarithmic_axes_and_are_chosen_by_a_click(drawn, qtbot):
    roofline = drawn((400, HEIGHT), points([*FRAME, row("search.emit", 2.0, 1e6, 20e6)]), "scoring.layer 1")
    assert roofline.marked.name == "scoring.layer 1"
    a, b, c = (roofline.place(x, 1e9 * x) for x in (0.1, 1.0, 10.0))
    assert b.x() - a.x() == pytest.approx(c.x() - b.x())
    assert b.y() - a.y() == pytest.approx(c.y() - b.y())
    assert b.y() > c.y()
    reported: list[str] = []
    roofline.chosen.connect(reported.append)
    places = {point.name: roofline.place(point.intensity, point.rate) for point in roofline.stages}
    assert all(roofline.rect().contains(where.toPoint()) for where in places.values())
    where = places["search.emit"]
    qtbot.mouseClick(roofline.viewport(), Qt.MouseButton.LeftButton, pos=where.toPoint())
    assert reported == ["search.emit"]
    assert roofline.spot_at(QPointF(-100, -100)) is None
    assert roofline.spot_at(where).tip.startswith("search.emit: ")
    assert "of what its bandwidth allows (ridge at 2)" in roofline.sentence()
    roofline.show_points((), None)
    assert roofline.sentence() == ""


def test_a_layer_says_what_it_is_of_all_and_leaves_the_limit_to_its_verdict():
    layers = stage_lines(FRAME, 1)
    output = next(line for line in layers if line.name == "scoring.output")
    assert output.of_group == pytest.approx((0.75, 0.75, 0.75))
    assert explanation(output, layers) == (
        "Within scoring, scoring.output takes 75 % of the time, 75 % of the operations, 75 % of the bytes; "
        "0.5 operations per byte. It runs."
    )
    (alone,) = stage_lines([row("search.emit", 2.0, 0.0, 20e6)], 1)
    assert alone.of_group == (None, None, None)
    assert explanation(alone, (alone,)) == "It runs."


def short(folder: Path) -> Path:
    """A session of one utterance."""
    return write_sample(folder / "a.asrs", frames=256, utterance_frames=256)


def test_the_view_has_the_stages_of_the_scope(qtbot, tmp_path):
    with view_on(RooflineView, short(tmp_path), qtbot, (420, 420)) as (view, playhead):
        known = {line.name for line in view.snapshot.desk.stages if line.intensity is not None}
        assert view.plot.stages
        assert {p.name for p in view.plot.stages} <= known
        last = view.plot.stages[-1]
        view.plot.chosen.emit(last.name)
        view.settle()
        assert view.plot.marked is last
        headers, rows = view.table()
        assert [row[0] for row in rows] == [p.name for p in view.plot.stages]
        view.plot.show_points(view.plot.stages, last.name, Place(1, "", (Level("L1", 2e9),)))
        assert view.table()[1] == [*rows, ["L1", "", "", "2 GB/s", ""]]
        assert all(len(cells) == len(headers) for cells in rows)
        assert last.name in view.summary()
        playhead.close()
        assert not view.plot.stages


def test_arrows_go_from_the_pinned_baseline_to_the_selection(sample, qtbot):
    with view_on(RooflineView, sample, qtbot, (900, 560)) as (view, playhead):
        axis, session, track = playhead.axis, playhead.session, playhead.track
        select(axis, 15.0, 20.0)
        view.plot.settle()
        plain = view.table()
        assert view.plot.arrows == []
        axis.pin((1.0, 4.0))
        settle()
        view.settle()
        view.plot.settle()
        before = {p.name: p for p in points(breakdown(session, 100, 400, track).stages)}
        now = {p.name: p for p in points(breakdown(session, 1500, 2000, track).stages)}
        # Far fewer Gaussians over the same means: fewer operations per byte.
        assert now["score.gaussians"].intensity < 0.9 * before["score.gaussians"].intensity
        line = dict(view.plot.arrows)["score.gaussians"]
        ring, dot = (view.plot.place(p["score.gaussians"].intensity, p["score.gaussians"].rate) for p in (before, now))
        # It begins and ends at the edges, on the line between the two.
        assert line.length() < QLineF(ring, dot).length()
        assert QLineF(ring, dot).angle() == pytest.approx(line.angle(), abs=1e-6)
        assert QLineF(ring, line.p1()).length() == pytest.approx(radius_of(before["score.gaussians"]))
        assert view.plot.spot_at(ring).tip.startswith("score.gaussians in the baseline: ")
        headers, rows = view.table()
        assert headers[-2:] == ["baseline op/byte", "baseline rate"]
        for row in rows[: len(now)]:
            one = before[row[0]]
            assert row[1:3] + row[-2:] == [*plain[1][rows.index(row)][1:3], f"{one.intensity:.3g}", rate(one.rate)]
        assert "score.gaussians in the baseline" in view.summary()
        assert "arrows from the baseline" in view.note
        axis.pin(None)
        settle()
        view.plot.settle()
        assert (view.plot.arrows, view.table()) == ([], plain)


def test_the_stages_of_each_configuration_add_up_to_all(sample):
    with opened(sample) as (session, track):
        whole = {row.name: row for row in breakdown(session, track=track).stages}
        each = [{row.name: row for row in stages_under(session, track, epoch, 0)} for epoch in range(3)]
        alone = {row.name: row for row in breakdown(session, session.configs[2].first_frame, None, track).stages}
    for name, row in whole.items():
        assert sum(rows[name].time_ns for rows in each if name in rows) == pytest.approx(row.time_ns)
    for rows in each:
        assert sum(row.share for row in rows.values()) == pytest.approx(1.0)
    assert each[2]["score.gaussians"].time_ns == pytest.approx(alone["score.gaussians"].time_ns)


def test_senones_are_said_as_a_part_of_all(tmp_path, qtbot):
    view = WorkView(TimeAxis())
    qtbot.addWidget(view)
    with opened(short(tmp_path)) as (session, track):
        for senones, whole in (({"senones": 10_252}, 10_252), ({}, None)):
            session.meta["scoring"] = {**senones, "context": [0, 0]}
            model = work_model(session, track, 256, (0.0, 2.56), 64, counted=(0, 256))
            curves = {curve.name: curve for curve in model.curves}
            assert curves["scoring senones"].whole == whole
            assert view.average(curves["scoring senones"]).endswith("(50 %)") is bool(senones)
            assert curves["search tokens"].whole is None
    assert view.average(SimpleNamespace(name="search tokens", average=math.nan, whole=5.0)) == "–"


def test_a_name_is_nearest_to_its_own_point(drawn):
    """Three stages on top of each other in a low roofline: one name stood next to the point below its own."""
    rows = [row(f"search.{name}", 1.0 - i / 10, 2e6 / 2**i, 1e7 / 2**i)
            for i, name in enumerate(("emit", "prune", "epsilon"))]  # fmt: skip
    roofline = drawn((360, HEIGHT), points([*rows, row("search.last", 0.2, 100.0, 1e7)]))
    dots = {p.name: roofline.place(p.intensity, p.rate) for p in roofline.stages}
    roofline.settle()
    named = roofline.named
    assert named[0][0] is roofline.marked
    for point, _, box in named:
        assert min(dots, key=lambda name: distance(box, dots[name])) == point.name


CLOSE = (
    # Name, share, operations per byte with the kernel's tiling and at best, Mop/s, GB/s, Gop/s.
    ("score.gaussians", 0.761, 0.5, 0.5, 5158, 28.2, 107.8),
    ("search.emit", 0.055, 0.0312, 0.2285, 422, 57.6, 6.03),
    ("score.lse", 0.052, 0.988, 1.039, 6059, 159.4, 23.5),
    ("search.prune", 0.039, 0.0133, 0.1563, 179, 57.6, 5.09),
    ("score.quantise", 0.02, 0.453, 0.518, 1634, 144.8, 71.1),
    ("search.epsilon", 0.011, 0.0093, 0.1667, 54, 57.6, 5.09),
)
"""Stages of the demo's own recording, with Gaussian selection on."""

NAMES = [stage[0] for stage in CLOSE]
POINTS = [
    Point(name, name.partition(".")[0], share, False, best, least, mops * 1e6, gb * 1e9, gops * 1e9)
    for name, share, least, best, mops, gb, gops in CLOSE
]


@each("marked", NAMES)
def test_all_stages_of_the_demo_have_their_names_in_a_small_roofline(drawn, marked):
    """At 1600 × 1000 the roof's name kept that of the most expensive stage from its place, and that of the second."""
    roofline = drawn((372, HEIGHT), POINTS, marked)
    written = {text.text for text in texts(roofline)}
    assert {name.partition(".")[2] for name in NAMES} <= written
    assert {"bandwidth", "arithmetic"} <= {text.partition(" ")[0] for text in written}
    assert faults(roofline) == []


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("size", [(276, 500), (372, HEIGHT), (900, 600)], ids=str)
def test_no_name_of_a_roof_lies_on_a_dot(drawn, size, share):
    """That of memory began below the stage that memory bounds, wherever on the slope it was."""
    roofline = drawn(size, ())
    for power in range(-18, 8):
        intensity = 10 ** (power / 10)
        rate = min(15.4e9 * intensity, 145e9) * 0.98
        one = Point("score.g", "scoring", share, False, intensity, intensity, rate, 15.4e9, 145e9)
        roofline.show_points([one], None)
        here, radius = roofline.place(intensity, rate), radius_of(one)
        dot = QPainterPath()
        dot.addEllipse(here, radius, radius)
        for text in texts(roofline):
            if text.text.startswith(("bandwidth", "arithmetic")):
                written = QPainterPath()
                written.addPolygon(text.shape)
                written.closeSubpath()
                assert not dot.intersects(written), (power, text)


def rung(kib: int, gb: float) -> Roof:
    return Roof(BANDWIDTH, "read", "float32", 1, kib << 10, gb * 1e9, gb * 1e9, gb * 1e9, "B/s")


LADDER = [rung(16 << i, gb) for i, gb in enumerate((200, 200, 90, 91, 92, 40, 41, 40, 12, 12, 12))]  # 16 KiB to 16 MiB
CACHES = (32 << 10, 512 << 10, 2 << 20)


def named(levels: tuple[Level, ...]) -> list[tuple[str, float]]:
    return [(level.name, level.bandwidth / 1e9) for level in levels]


def test_levels_of_memory_are_named_by_the_caches_and_by_sizes_without_them():
    known = levels(LADDER, CACHES)
    assert named(known) == [("L1", 200), ("L2", 91), ("L3", 41), ("memory", 12)]
    # As fast as the first level: no line of its own. Nothing beyond the last cache: not memory.
    one = (16 << 10, 32 << 10, 64 << 20)
    assert named(levels(LADDER, one)) == [("L1, L2", 200), ("L3", 41), ("16 MiB", 12)]
    assert named(levels(LADDER[:8], one)) == [("L1, L2", 200), ("L3", 41)]
    assert named(levels(LADDER, ()))[::3] == [("up to 32 KiB", 200), ("up to 16 MiB", 12)]
    assert named(levels(LADDER, (), LADDER[-1:]))[-1] == ("memory", 12)
    assert levels([], CACHES) == ()
    assert [Place(1, "", known).level_of(rate) for rate in (95e9, 60e9)] == ["L2", ""]


@each(
    "caches, sizes",
    [
        ([{"level": 2, "bytes": 9, "type": "unified"}, {"level": 1, "bytes": 4}], (4, 9)),
        ([{"level": 1, "bytes": 4}, {"level": 1, "bytes": 8, "type": "instruction"}], (4,)),
        ([{"level": 1, "bytes": 9}, {"level": 2, "bytes": 4}], ()),
        ([{"level": 1, "bytes": -9}, "what"], ()),
        ("none", ()),
    ],
)
def test_caches_that_make_no_sense_are_not_known(caches, sizes):
    assert cache_sizes({"caches": caches}) == sizes


@pytest.mark.parametrize("size", [(372, HEIGHT), (900, 560)], ids=str)
def test_the_levels_of_memory_are_thin_lines_with_names(drawn, size):
    found = levels(LADDER, CACHES)
    roofline = drawn(size, POINTS, "search.emit", Place(2, "", (*found, Level("disk", 57.6e9))))
    written = {text.text for text in texts(roofline)}
    assert {name.partition(".")[2] for name in NAMES} <= written
    # The stage's own roof is named after its level, and drawn once.
    assert "disk 57.6 GB/s, 2 threads" in written
    assert not any(text.startswith("bandwidth") for text in written)
    if size[0] > 400:
        assert {"L1 200 GB/s", "L2 91 GB/s", "L3 41 GB/s", "memory 12 GB/s"} <= written
    assert faults(roofline) == []


def test_a_stage_on_a_device_has_its_roofs(drawn, tmp_path):
    with Session.open(short(tmp_path)) as session:
        number, stage = next(iter(session.stages.items()))
        assert place_of(session, stage.name, 2).device == ""
        session.costs[number, 0] = replace(next(iter(session.costs.values())), device="cuda")
        session.calibration = RoofTable(tuple(replace(r, name="read@cuda") for r in LADDER))
        session.meta["devices"] = {"cuda": {"name": "A card"}}
        place = place_of(session, stage.name, 2)
        assert (place.device, place.levels[-1]) == ("A card", Level("memory", 12e9))
        del session.meta["devices"]
        assert place_of(session, stage.name, 2).device == "cuda"
    written = {text.text for text in texts(drawn((620, 480), POINTS, None, place))}
    assert "roofs of score.gaussians on A card" in written
    assert "arithmetic 108 Gop/s" in written, "threads are the processor's"


KIB = 1024
MACHINE = [(1, "data", 32 * KIB), (1, "instruction", 64 * KIB), (2, "unified", 1024 * KIB), (3, "unified", 65536 * KIB)]


def test_the_memory_ladder_has_bytes_of_the_law_over_the_measured_time(sample):
    with Session.open(sample) as session:
        caches = [{"level": level, "type": kind, "bytes": size} for level, kind, size in MACHINE]
        session.meta["machine"] = {"caches": caches}
        found = breakdown(session)
        model = ladder_model(session, found.stages, FRAMES, 1)
        (number,) = (n for n, stage in session.stages.items() if stage.name == "score.gaussians")
        spans = session.spans[session.spans["stage"] == number]
        moved = 20e6 * len(spans) + 135.0 * int(spans["work0"].sum())
    (row,) = (one for one in found.stages if one.name == "score.gaussians")
    (one,) = model.stages
    assert (one.name, one.level) == ("score.gaussians", "L3")
    assert one.frame_bytes == pytest.approx(moved / FRAMES)
    assert one.rate == pytest.approx(moved / row.own_ns * 1e9)
    # Between 97 GB/s at 1 MiB and 33 GB/s at 256 MiB.
    part = math.log(64e6 / 2**20) / math.log(256)
    assert one.bandwidth == pytest.approx(1 / ((1 - part) / 97e9 + part / 33e9))
    assert model.caches == (32 * KIB, 1024 * KIB, 65536 * KIB)
    assert model.ladders[0].rungs[0] == (1 << 14, 150e9)


def test_a_set_is_in_the_first_cache_that_it_fits_into():
    for size, level in ((1, "L1"), (32 * KIB, "L1"), (33 * KIB, "L2"), (1 << 30, MEMORY)):
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
        names = [row[0] for row in view.table()[1]]
        assert names.index("search.frames") < names.index("frontend.mfcc") < names.index("processor")
        assert all(one.rate < one.bandwidth for one in view.model().stages if one.bandwidth)
        playhead.close()
        assert view.model() == LadderModel()
        assert view.summary() == "No stage whose memory traffic is known yet."
