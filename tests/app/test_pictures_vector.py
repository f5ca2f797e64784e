"""SVG and PDF: nothing overprints, text needs no font and is found, the same picture every time."""

import re
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import asrscope
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QImage
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QWidget
from rendered import coarse, desk_picture, grey, of_pdf, of_svg

from app.pictures.request import PictureRequest
from app.pictures.writers import write_picture
from app.style.theme import THEMES, font
from profiler.session.reader import Session

SIZE = (1280, 800)
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
    wanted = PictureRequest(size=SIZE, scale=1, theme=name)
    desk_picture(sample, tmp_path / "a.png", wanted)
    desk_picture(sample, tmp_path / f"a.{kind}", wanted)
    other = tmp_path / f"a.{kind}"
    drawn = of_svg(other.read_bytes()) if kind == "svg" else of_pdf(other)
    seen = (SIZE[1] - CAPTION_HEIGHT, SIZE[0])
    away = np.abs(coarse(grey(QImage(str(tmp_path / "a.png"))), seen) - coarse(drawn, seen))
    assert away.mean() < 5
    assert away.max() < ALIKE, np.unravel_index(away.argmax(), away.shape)


def test_svg_is_made_of_shapes_and_needs_no_font(sample, tmp_path):
    out = tmp_path / "cost.svg"
    desk_picture(sample, out, PictureRequest(("cost",), (800, 420)))
    text = out.read_text()
    for absent in ("<image", "<text", "session_id"):
        assert absent not in text
    with Session.open(sample) as session:
        assert session.meta["session_id"] in text
    assert THEMES["dark"].category["search"] in text
    labels = [e.get("aria-label") for e in ElementTree.fromstring(text).iter()]
    assert {"Cost per frame", "RTF", "selection on"} <= set(labels)
    assert QSvgRenderer(str(out)).viewBox().size() == QSize(800, 420)


def test_lines_of_charts_keep_their_width_in_any_program(sample, tmp_path):
    """Many programs scale the width of a line with its coordinates, and leave out what is far larger than the page."""
    desk_picture(sample, tmp_path / "a.svg", PictureRequest(("cost", "work"), (800, 600)))
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    groups = [
        group for group in root.iter(f"{SVG}g") for line in group if line.get("vector-effect") == "non-scaling-stroke"
    ]
    assert {group.get("transform") for group in groups} == {None}
    points = re.findall(r"[ML](-?[\d.]+),", (tmp_path / "a.svg").read_text())
    assert max(abs(float(x)) for x in points) <= 1e5


def contents(data: bytes) -> bytes:
    """All streams of a PDF."""
    found = []
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL):
        try:
            found.append(zlib.decompress(stream))
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
