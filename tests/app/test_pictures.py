"""Pictures: right size, their origin in them, whole or not at all; that of a sweep."""

import json
import re
import sys
from xml.etree import ElementTree

import made_study
import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QImage, QImageReader
from PySide6.QtWidgets import QLabel
from rendered import desk_picture
from sample_session import write_sample

from app.cli.sweep import SIZE
from app.model.provenance import provenance_of
from app.model.study import Study, study_of
from app.model.study_texts import FRONT, TRIED, document, front_chart
from app.pictures.drawings import drawings_picture
from app.pictures.request import PictureRequest
from app.pictures.writers import write_picture
from app.style.theme import THEMES, theme
from app.views import PICTURES
from pipelines.labs.chart import Line, Note
from profiler.errors import BadInput
from profiler.session.reader import Session
from tests.bench.campaign import sessions
from tests.each import each


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("s") / "a.asrs", frames=1024, utterance_frames=256)


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


def test_origin_of_a_session(path):
    with Session.open(path) as session:
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
def test_every_view_makes_a_picture(path, tmp_path, view, name):
    out = tmp_path / "v.png"
    before = theme().name
    desk_picture(path, out, PictureRequest((view,), size=(700, 420), theme=name, scale=1))
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


def test_what_cannot_be_is_said_in_one_sentence(tmp_path):
    for name, size, scale, says in (
        ("a.jpg", (400, 200), 1, "ends in .png, .svg, .pdf"),
        ("a.png", (40, 200), 1, "120 to 16384 points"),
        ("a.png", (16000, 16000), 1, "choose a smaller size"),
        ("a.png", (400, 200), float("nan"), "scale is 0.25 to 8"),
        ("nowhere/a.png", (400, 200), 1, "cannot be written there"),
    ):
        with pytest.raises(BadInput, match=re.escape(says)) as caught:
            write_picture(lambda: (label(), {}), tmp_path / name, size, scale=scale)
        assert "\n" not in str(caught.value)
        assert str(caught.value).endswith(".")
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
