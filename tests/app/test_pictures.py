"""Pictures: right size, their origin in them, whole or not at all; that of a sweep.

SVG and PDF: nothing overprints, text needs no font and is found, the same picture every time.
"""

import json
import re
import sys
import zlib
from xml.etree import ElementTree

import made_study
import numpy as np
import pytest
from command_line import asrscope
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QImage, QImageReader
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QWidget
from rendered import coarse, desk_picture, grey, of_pdf, of_svg

from app.cli.sweep import SIZE
from app.model.provenance import provenance_of
from app.model.study import Study, study_of
from app.model.study_texts import FRONT, TRIED, document, front_chart
from app.pictures.drawings import drawings_picture
from app.pictures.request import PictureRequest
from app.pictures.writers import write_picture
from app.style.theme import THEMES, font, theme
from app.views import PICTURES
from pipelines.labs.chart import Line, Note
from profiler.errors import BadInput
from profiler.session.reader import Session
from tests.bench.campaign import sessions
from tests.each import each

ORIGIN = {"session": "0123456789", "file": "x.asrs", "config": "abc", "command": "asrscope run"}


def label() -> QLabel:
    made = QLabel("forty-two")
    made.resize(300, 150)
    return made


def test_a_png_has_its_size_and_its_origin(tmp_path):
    out = tmp_path / "a.png"
    write_picture(lambda: (label(), ORIGIN), out, (400, 200), scale=1.5)
    image = QImage(str(out))
    assert image.size() == QSize(600, 300)
    reader = QImageReader(str(out))
    assert json.loads(reader.text("asrscope")) == ORIGIN
    assert reader.text("Software") == "asrscope"
    assert round(image.dotsPerMeterX() * 0.0254) == 144


def test_origin_of_a_session(sample):
    with Session.open(sample) as session:
        origin = provenance_of(session)
        assert origin["session"] == session.meta["session_id"]
    assert re.fullmatch("[0-9a-f]{12}", origin["config"])
    assert origin["machine"] == "Imaginary CPU, 2 cores"
    assert origin["versions"].startswith("numpy ")
    assert origin["command"] == "asrscope run --preset synthetic"
    assert "UTC" in origin["recorded"]


@pytest.mark.slow
@pytest.mark.parametrize("view", PICTURES)
@pytest.mark.parametrize("name", ["dark", "light"])
def test_every_view_makes_a_picture(sample, tmp_path, view, name):
    out = tmp_path / "v.png"
    before = theme().name
    desk_picture(sample, out, PictureRequest((view,), size=(700, 420), theme=name, scale=1))
    assert theme().name == before
    image = QImage(str(out))
    assert image.size() == QSize(700, 420)
    # Left of what the views draw: within the card, whose edge is at 12.
    inside = [image.pixelColor(20, y) for y in range(110, 340, 20)]
    assert inside.count(QColor(THEMES[name].card)) >= 8
    colors = {image.pixelColor(x, y).name() for x in range(0, 700, 3) for y in range(0, 420, 3)}
    assert len(colors) > 12, "something is drawn"


STRANGE = "<script>&\"'</script>]]> \x1b[2J\x00\x0b\uffff"


@pytest.mark.skipif(sys.platform == "win32", reason="no such file names")
@pytest.mark.parametrize("view", ["breakdown", "words"])
def test_names_of_strangers_are_text_in_svg_and_pdf(tmp_path, view):
    """Of the file, the preset, the utterances, the stages, the machine: drawn, in the title and in the description."""
    (tmp_path / sessions.SESSION).write_bytes(sessions.full())
    sessions.renamed(STRANGE, tmp_path / sessions.SESSION)
    session = (tmp_path / sessions.SESSION).rename(tmp_path / "<script>&\"'.asrs")
    wanted = PictureRequest((view,), size=(1200, 800))
    desk_picture(session, tmp_path / "a.svg", wanted)
    tree = ElementTree.parse(tmp_path / "a.svg")
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert not tags & {"script", "b", "img"}
    drawn = [element.get("aria-label") or "" for element in tree.iter()]
    assert any("<script>" in text for text in drawn)
    said = "".join(tree.getroot().itertext())
    assert "<script>&\"'.asrs" in said
    assert "preset <script>&\"'</script>]]>" in said
    desk_picture(session, tmp_path / "a.pdf", wanted)
    data = (tmp_path / "a.pdf").read_bytes()
    (about,) = re.findall(rb"<\?xpacket begin[^>]*>(.*?)<\?xpacket end", data, re.DOTALL)
    assert "<script>&" in "".join(ElementTree.fromstring(about).itertext())
    assert data.count(b"/Type /Page\n") == 1


@each(
    "name, size, scale, says",
    [
        ("a.jpg", (400, 200), 1, "ends in .png, .svg, .pdf"),
        ("a.png", (40, 200), 1, "120 to 16384 points"),
        ("a.png", (16000, 16000), 1, "choose a smaller size"),
        ("a.png", (400, 200), float("nan"), "scale is 0.25 to 8"),
        ("nowhere/a.png", (400, 200), 1, "cannot be written there"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(qapp, tmp_path, name, size, scale, says):
    with pytest.raises(BadInput, match=rf"^[^\n]*{re.escape(says)}[^\n]*\.$"):
        write_picture(lambda: (label(), {}), tmp_path / name, size, scale=scale)
    assert list(tmp_path.glob("**/*.png")) == []


def sweep(*trials: tuple[float, float], ci95: tuple[float, float] | None = None) -> Study:
    """A sweep with trials of (time ratio, word error rate), all on the front but those that an earlier one is below."""
    rows = [made_study.trial(n, r, w, settings={"search.beam": 8.0 + n}) for n, (r, w) in enumerate(trials)]
    front = [
        made_study.point(n, None if ci95 is None else ratio, ci95)
        for n, (ratio, wer) in enumerate(trials)
        if not any(r <= ratio and w < wer for r, w in trials)
    ]
    return study_of(made_study.study(rows, front))


def test_the_front_is_drawn_with_intervals_and_the_other_trials_without():
    chart = front_chart(sweep((0.5, 0.4), (0.9, 0.1), (0.95, 0.2), ci95=(0.4, 1.0)))
    tried, steps, points = (layer for layer in chart.layers if isinstance(layer, Line))
    assert (tried.name, tried.x, tried.y) == (TRIED, (20.0,), (0.95,))
    assert steps.steps
    assert (points.name, points.x, points.y) == (FRONT, (10.0, 40.0), (0.9, 0.5))
    assert (points.low, points.high) == ((0.4, 0.4), (1.0, 1.0))
    assert chart.x.low < 10
    notes = [layer for layer in chart.layers if isinstance(layer, Note)]
    assert [(note.text, note.x) for note in notes] == [("beam 9", 10.0), ("beam 8", 40.0)]


def test_points_close_to_each_other_have_numbers_and_unconfirmed_ones_no_interval():
    chart = front_chart(sweep((0.5, 0.4), (0.6, 0.39), (0.9, 0.1)))
    assert [layer.text for layer in chart.layers if isinstance(layer, Note)] == ["#2", "#1", "#0"]
    points = chart.layers[2]
    assert points.low == points.high == points.y
    # The front of three objectives is no line.
    tree = made_study.four_trials(objectives=["rtf", "wer", "memory"])
    lines = [layer for layer in front_chart(study_of(tree)).layers if isinstance(layer, Line)]
    assert [(line.name, line.joined) for line in lines] == [(TRIED, False), (FRONT, False)]


@each("tree", [sweep(), sweep((0.5, 0.4)), sweep((0.5, 0.4), (0.9, 0.1), ci95=(0.5, 0.6))])
def test_a_picture_is_written_also_of_few_trials(qapp, tree, tmp_path):
    drawings_picture(document(tree), {}, tmp_path / "front.png", SIZE, scale=1.0)
    image = QImage(str(tmp_path / "front.png"))
    assert (image.width(), image.height()) == (960, 600)


PAGE = (1280, 800)
CAPTION_HEIGHT = 70  # Its last line is the command, in which the kind of file is named

SVG = "{http://www.w3.org/2000/svg}"

ALIKE = 60.0
"""Most that the brightness of a square of 8 × 8 pixels differs between kinds, whose letters are not equally bold."""


def scrolled():
    """Twenty lines in a scroll area of 60 points, above an empty half."""
    page = QWidget()
    page.resize(300, 150)
    area = QScrollArea(page)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(QLabel("\n".join(["██████ overflowing text, wider than its place"] * 20)))
    area.setGeometry(0, 0, 240, 60)
    area.verticalScrollBar().setValue(30)
    return page


def test_what_is_scrolled_away_is_cut_off_in_an_svg(tmp_path):
    """By a clip, which browsers and editors apply, and Qt's own renderer does not."""
    out = tmp_path / "a.svg"
    write_picture(lambda: (scrolled(), {}), out)
    root = ElementTree.parse(out).getroot()
    boxes = {
        f"url(#{clip.get('id')})": [float(box.get(side) or 0) for side in ("x", "y", "width", "height")]
        for clip in root.iter(f"{SVG}clipPath")
        for box in clip.iter(f"{SVG}rect")
    }
    lines = [
        boxes[group.get("clip-path") or ""]
        for group in root.findall(f"{SVG}g")
        for line in group.iter(f"{SVG}path")
        if "overflowing" in (line.get("aria-label") or "")
    ]
    assert lines == [[0, 0, 240, 60]] * 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dark", "light"])
@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_a_file_shows_what_the_png_shows(sample, tmp_path, kind, name):
    wanted = PictureRequest(size=PAGE, scale=1, theme=name)
    desk_picture(sample, tmp_path / "a.png", wanted)
    desk_picture(sample, tmp_path / f"a.{kind}", wanted)
    other = tmp_path / f"a.{kind}"
    drawn = of_svg(other.read_bytes()) if kind == "svg" else of_pdf(other)
    seen = (PAGE[1] - CAPTION_HEIGHT, PAGE[0])
    away = np.abs(coarse(grey(QImage(str(tmp_path / "a.png"))), seen) - coarse(drawn, seen))
    assert away.mean() < 5
    assert away.max() < ALIKE, np.unravel_index(away.argmax(), away.shape)


def test_svg_is_made_of_shapes_needs_no_font_and_has_lines_that_keep_their_width(sample, tmp_path):
    """Many programs scale the width of a line with its coordinates, and leave out what is far larger than the page."""
    out = tmp_path / "cost.svg"
    desk_picture(sample, out, PictureRequest(("cost", "work"), (800, 600)))
    text = out.read_text()
    for absent in ("<image", "<text", "session_id"):
        assert absent not in text
    with Session.open(sample) as session:
        assert session.meta["session_id"] in text
    assert THEMES["dark"].category["search"] in text
    root = ElementTree.fromstring(text)
    assert {"Cost per frame", "RTF", "selection on"} <= {element.get("aria-label") for element in root.iter()}
    assert QSvgRenderer(str(out)).viewBox().size() == QSize(800, 600)
    lines = [(group, line) for group in root.iter(f"{SVG}g") for line in group]
    groups = [group for group, line in lines if line.get("vector-effect") == "non-scaling-stroke"]
    assert {group.get("transform") for group in groups} == {None}
    assert max(abs(float(x)) for x in re.findall(r"[ML](-?[\d.]+),", text)) <= 1e5


def contents(data: bytes) -> bytes:
    """All streams of a PDF; one whose last byte is taken for the end of a line is read without it."""
    found = []
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL):
        try:
            found.append(zlib.decompressobj().decompress(stream))
        except zlib.error:
            found.append(stream)
    return b"".join(found)


def test_pdf_has_one_page_of_its_size_its_fonts_and_its_origin(sample, tmp_path):
    out = tmp_path / "cost.pdf"
    desk_picture(sample, out, PictureRequest(("cost",), (800, 420)))
    data = out.read_bytes()
    assert data.startswith(b"%PDF-")
    assert data.count(b"/Type /Page\n") == 1
    box = re.search(rb"/MediaBox \[([\d. ]+)\]", data)
    assert box is not None
    assert [float(v) for v in box[1].split()] == pytest.approx([0, 0, 600, 315], abs=1)
    fonts = re.findall(rb"/Type /FontDescriptor.*?endobj", data, re.DOTALL)
    assert fonts
    assert all(b"/FontFile" in described for described in fonts)
    with Session.open(sample) as session:
        assert session.meta["session_id"].encode() in contents(data)


@pytest.mark.slow
def test_two_processes_make_the_same_picture(sample, tmp_path):
    """Whatever the file is called, and wherever it lies."""
    seen = []
    own = ({"PYTHONHASHSEED": "1", "QT_HASH_SEED": "0"}, {"PYTHONHASHSEED": "2", "QT_FONT_DPI": "144"})
    for name, environment in zip(("a", "else where"), own, strict=True):
        (folder := tmp_path / name).mkdir()
        png, svg, pdf = (folder / f"{name}.{kind}" for kind in ("png", "svg", "pdf"))
        views = ("--view", "cost", "--view", "breakdown", "--size", "1000x600")
        done = asrscope("export", sample, "--png", png, "--svg", svg, "--pdf", pdf, *views, **environment)
        assert done.returncode == 0, done.stderr
        seen.append((grey(QImage(str(png))), of_svg(svg.read_bytes()), of_pdf(pdf)))
    for one, other in zip(*seen, strict=True):
        assert np.array_equal(one, other)


def test_digits_of_a_pdf_keep_their_meaning(tmp_path):
    """Copied from a PDF they were signs of a private use."""
    label = QLabel("31.8 ms, 5 000 words, 4–6")
    label.setFont(font())
    label.resize(300, 130)
    write_picture(lambda: (label, {}), tmp_path / "a.pdf")
    codes = re.findall(rb"<([0-9a-f]{4})>", contents((tmp_path / "a.pdf").read_bytes()).lower())
    assert not [code for code in codes if code.startswith(b"e")], "private use begins at E000"
    assert {f"{ord(digit):04x}".encode() for digit in "31850–"} <= set(codes)
