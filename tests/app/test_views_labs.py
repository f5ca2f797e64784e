"""The chart of a lab: its axes, its legend, where its panels lie, and that every layer is drawn."""

import dataclasses
import math
from itertools import combinations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QHelpEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QToolTip
from views_desk import pixels_of

from app.pictures.writers import themed
from app.style.theme import DARK, LIGHT, theme
from app.views.labs import card, layers
from app.views.labs.layers import looks
from app.views.labs.panel import Panel, described
from app.views.labs.ranges import HEADERS, Reach, reaches, rows_of
from pipelines import labs
from pipelines.labs.chart import Axis, Bars, Block, Chart, Gantt, Line, Mark
from pipelines.labs.declaration import PublishedValue
from pipelines.labs.figures import ci, figure, format_number
from pipelines.labs.verdicts import HOLDS, Finding
from profiler.analysis.comparison.statistics import Ratio
from tests.app.text_geometry import faults, texts
from tests.each import each

BYTES, RATE = Axis("data", "B", log=True), Axis("read", "B/s", log=True)


def test_figures_have_their_units_and_numbers_and_ratios_three_figures():
    for value, unit, text in (
        (32768, "B", "32 KiB"),
        (1e12, "B/s", "1 TB/s"),
        (1.22e-6, "s", "1.22 µs"),
        (153.0, "s", "153 s"),
        (0.25, "%", "0.25 %"),
        (0.0, "s", "0 s"),
    ):
        assert figure(value, unit) == text
    assert [format_number(v) for v in (0.04242, 12.345, 4096, 3.1e12, 1e-9, -2.5)] == [
        *("0.0424", "12.3", "4\N{NARROW NO-BREAK SPACE}100", "3.1·10¹²", "10⁻⁹", "-2.5")
    ]
    assert ci(Ratio(0.242, 0.24, 0.244, 0.0)) == "0.242 (0.240 to 0.244)"
    assert ci(Ratio(100.2, 99.5, 4096.0, 0.0)) == "100 (99.5 to 4\N{NARROW NO-BREAK SPACE}100)"
    assert [ci(ratio) for ratio in (Ratio(2.0), None)] == ["2", "unknown"]


def test_axes_reach_over_values_intervals_and_marks():
    line = Line("a", (1e4, 1e6), (1e9, 2e9), low=(5e8, 1e9), high=(2e9, 4e9))
    x, y = reaches(Chart(BYTES, RATE, (line, Mark("note", 1e12))))
    assert (x.low, x.high) == (1e4, 1e6)
    assert y.low < 5e8
    assert y.high > 1e12
    assert y.place(y.low) == 0.0
    assert y.place(math.sqrt(y.low * y.high)) == pytest.approx(0.5)


@each("log, low, high", [(False, 0.0, 7.3), (False, -2.0, 1.0), (True, 0.01, 3e8), (True, 2.0, 7.0)])
def test_ticks_are_few_and_on_the_axis(log, low, high):
    for reach in (Reach(Axis("a", log=log), low, high), Reach(BYTES, 16384.0, 2.0**40, doubling=True)):
        for at_most in (3, 6, 9):
            ticks = reach.ticks(at_most)
            assert 1 <= len(ticks) <= at_most + 2
            assert all(reach.holds(tick) for tick in ticks)


KINDS = Axis("kind", categories=("one", "two", "three"))
WORDY = Axis("kind", categories=("a list comprehension over a zip of both", "numpy", "compiled"))
TIME = Axis("time", "s")
GANTT = Gantt((Block(0, 0.0, 1.0, "forward", "3"), Block(1, 1.0, 2.0, "back")))
STACKED = (("in", (1.0, 1.0, 0.0)), ("out", (2.0, 0.0, 1.0)))
EVERY = {
    "bars": Chart(KINDS, TIME, (Bars("a", (1.0, 2.0, None), (0.5, 1.0, None), (2.0, 3.0, None)),)),
    "lying": Chart(WORDY, TIME, (Bars("a", (1.0, 2.0, 3.0)), Mark("note", 2.5))),
    "stacked": Chart(KINDS, TIME, tuple(Bars(n, v, stacked=True) for n, v in STACKED)),
    "line": Chart(BYTES, RATE, (Line("a", (1e4, 1e5), (1e9, None)), Mark("L1", 32768, on="x"))),
    "band": Chart(Axis("x"), TIME, (Line("a", tuple(map(float, range(99))), (1.0,) * 99, (0.5,) * 99, (2.0,) * 99),)),
    "dashed": Chart(Axis("x"), TIME, (Line("model", (0.0, 1.0), (1.0, 2.0), dashed=True), Mark("n", 1.0, until=1.5))),
    "steps": Chart(Axis("x"), Axis("share"), (Line("a", (0.0, 1.0, 2.0), (0.1, 0.5, 1.0), steps=True),)),
    "gantt": Chart(TIME, Axis("worker", categories=("0", "1")), (GANTT,)),
    "empty": Chart(Axis("x"), TIME, ()),
}  # fmt: skip


@pytest.fixture
def panel(qtbot):
    """A chart in a size."""

    def make(chart: Chart, *size: int) -> Panel:
        made = Panel(chart, looks(chart))
        qtbot.addWidget(made)
        made.resize(*(size or (400, 280)))
        return made

    return make


@pytest.mark.parametrize("kind", EVERY)
def test_every_layer_is_drawn_and_named_under_the_mouse(kind, panel):
    drawn = panel(EVERY[kind])
    assert faults(drawn) == []
    assert (drawn.grab().toImage() == panel(EVERY["empty"]).grab().toImage()) == (kind == "empty")
    assert described(EVERY[kind])
    tips = {
        spot.tip
        for x in range(0, 400, 4)
        for y in range(0, 280, 4 if kind != "band" else 28)
        if (spot := drawn.spot_at(QPointF(x, y))) is not None
    }
    rows = [row for row in rows_of(EVERY[kind]) if row[1] not in ("note", "n", "L1")]
    wanted = {f"{name}, {at}: {value}" + (f" ({ends})" if ends else "") for _, name, at, value, ends in rows}
    assert tips <= wanted
    if kind not in ("band", "stacked"):  # closer than the pixels tried; a part of no length
        assert tips == wanted
    assert bool(tips) == bool(rows)


def test_a_plot_follows_theme_and_scale_and_shows_its_tips(panel):
    drawn = panel(EVERY["bars"])
    for tokens in (LIGHT, DARK):
        with themed(tokens.name):
            image = drawn.grab().toImage()
            assert image.pixelColor(2, 2) == tokens.color("card")
            bar = next(spot.place for spot in drawn.canvas.spots)
            assert image.pixelColor(bar.center().toPoint() - QPoint(9, 0)) == tokens.color("compute")
    # Sharp at any scale: the edge of a bar is no wider than a pixel of the picture.
    row, edge = pixels_of(drawn, 4.0)[round(4 * bar.center().y()) + 24], round(4 * bar.left())
    assert [row[edge - 3], row[edge + 3]] == [theme().color(name).rgb() for name in ("card", "compute")]
    at = bar.center().toPoint()
    help_event = QHelpEvent(QEvent.Type.ToolTip, at, drawn.mapToGlobal(at))
    QApplication.sendEvent(drawn.viewport(), help_event)
    assert QToolTip.text() == "a, one: 1 s (500 ms … 2 s)"
    QToolTip.hideText()
    # The wheel is left to what it stands in.
    none = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(QPointF(at), drawn.mapToGlobal(QPointF(at)), QPoint(), QPoint(0, -120), *none, False)
    QApplication.sendEvent(drawn.viewport(), event)
    assert not event.isAccepted()


def test_the_table_has_every_value():
    found = {kind: [row[1:] for row in rows_of(chart)] for kind, chart in EVERY.items()}
    assert {len(row) for rows in found.values() for row in rows} == {len(HEADERS) - 1}
    assert found["bars"] == [("a", "one", "1 s", "500 ms … 2 s"), ("a", "two", "2 s", "1 s … 3 s")]
    assert found["line"] == [("a", "9.77 KiB", "1 GB/s", ""), ("L1", "data", "32 KiB", "")]


@each("width, height, columns", [(1100.0, 420.0, 3), (420.0, 900.0, 1), (560.0, 560.0, 2)])
def test_three_panels_stand_as_there_is_room(width, height, columns):
    whole = QRectF(0, 0, width, height)
    places = card.panel_places(3, whole)
    assert len({place.left() for place in places}) == columns
    assert all(whole.contains(place) for place in places)
    assert not any(one.intersects(other) for one, other in combinations(places, 2))


def test_a_name_looks_the_same_in_all_panels_and_unlike_others_of_its_panels():
    def panel(*names: str) -> Chart:
        return Chart(Axis("x"), Axis("y"), tuple(Line(n, (0.0, 1.0), (1.0, 2.0)) for n in names))

    whole = replace(panel("time"), beside=(panel(*"abcd"), panel("numpy", "b", *"efg")))
    known = looks(whole)
    assert set(known) == {"time", "numpy", *"abcdefg"}
    for one in (whole, *whole.beside):
        mine = [known[name] for name in layers.named(one)]
        assert len(set(mine)) == len({look.category for look in mine}) == len(mine)
        assert len({look.sign for look in mine}) == len(mine)
        assert not {look.category for look in mine} & set(layers.GREYS)


@pytest.mark.parametrize("tall", [115, 220])
def test_names_next_to_horizontal_bars_stay_in_the_panel_and_differ(tall, panel):
    names = ("one worker", "synchronous", "an exchange each", "an exchange for 4")
    axes = Axis("way", categories=names), Axis("speed-up over one worker", "×", low=0.0)
    drawn = panel(Chart(*axes, (Bars("speed", (1.0, 1.1, 0.9, 1.5)),)), 180, tall)
    found = [text for text in texts(drawn) if text.ink.right() < drawn.canvas.area.left()]
    assert min(text.ink.left() for text in found) >= 0
    lines = [text.text for text in found]
    if tall > 150:
        assert lines == ["one worker", "synchronous", "an exchange", "each", "an exchange", "for 4"]
    else:
        assert len(set(lines)) == len(names)
    assert "speed-up over one worker (×)" in {text.text for text in texts(drawn)}


@pytest.mark.parametrize("width", [420, 780, 1140])
def test_no_line_of_a_card_ends_between_a_number_and_its_unit(qtbot, width):
    units = ("ns", "%", "KiB", "GFLOP/s", "GB/s")
    said = " ".join(f"It has {n} {unit}." for n in range(7, 28) for unit in units)
    finding = Finding(HOLDS, said, {"rate": 2e9})
    lab = dataclasses.replace(
        labs.load("gradient-noise"),
        claim=said,
        follows={HOLDS: said},
        published=tuple(PublishedValue("read" + "s" * n, 1e9, "B/s", "rate") for n in range(12)),
    )
    drawn = card.LabCard()
    qtbot.addWidget(drawn)
    drawn.resize(width, 3000)
    drawn.show_lab(lab, finding)
    lines = [text.text.split() for text in texts(drawn)]
    assert len(lines) > 20
    assert [line for line in lines if line[0].rstrip(".,") in units] == []
    assert card.said_text(lab, finding).startswith("read: claimed 1 GB/s, here 2 GB/s")
    drawn.show_lab(lab)  # before a verdict nothing stands beside what is claimed
    assert not any("claimed" in text.text for text in texts(drawn))
