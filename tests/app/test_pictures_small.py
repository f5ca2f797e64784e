"""Small pictures: headline, caption and breakdown are whole, or the picture is refused as too small."""

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget
from sample_session import write_sample
from text_geometry import Text, cut_short, faults, texts

from app.model.effects import Effect
from app.pictures import writers
from app.pictures.request import PictureRequest
from app.pictures.session import SessionPictures
from app.pictures.texts import Figure, Headline, ToggleState
from app.pictures.view_picture import ViewPicture
from app.pictures.writers import CaptionLine, lay_out
from app.style.theme import CATEGORY_TITLES
from pipelines.audio.word_errors import ErrorCount
from profiler.analysis.categories import CATEGORIES, THROTTLED

DEMO = Headline(
    "Demo: where the time goes",
    "2026-11-23-181512-demo.asrs · 13 utterances · 83.0 s of audio",
    (
        ToggleState(
            "Gaussian selection",
            "vq · 512 codewords · 0.5 shortlist radius",
            "vq · 512 codewords · 0.5 shortlist radius, since 0:46.9",
            True,
            Effect("faster", 4.2, 4.1, 4.3, ErrorCount(2, 30), ErrorCount(3, 30), "undecided", 41.5, 9.88, 8.0),
        ),
        ToggleState("Frame skipping", "off: every frame scored", "off: every frame scored", False, None),
    ),
    (Figure("RTF", "0.558", "whole run"), Figure("WER", "29.5 %", "105 words under these settings")),
)
"""As long as the headlines of real sessions are."""


@pytest.mark.parametrize("width", [600, 640, 720, 799, 800, 900, 960, 1000, 1200, 1279, 1280, 1600])
def test_the_headline_is_whole(qapp, width):
    size = QSize(width, 500)
    sheet = ViewPicture((), DEMO, (), width)
    lay_out(sheet, size)
    assert cut_short(sheet) == faults(sheet) == []
    drawn = " ".join(text.text for text in texts(sheet))
    assert "4.2× faster (4.1–4.3)" in drawn
    assert "105 words under these settings" in drawn
    sheet.deleteLater()


def test_no_line_of_the_caption_ends_before_a_unit(qapp):
    line = CaptionLine("drift of the roofs at most 2.1 %")
    whole = line.fontMetrics().horizontalAdvance(line.text())
    for width in range(whole // 2, whole):
        line.resize(width, 200)
        assert [text for text in texts(line) if text.text.strip() == "%"] == [], width
    line.deleteLater()


@pytest.fixture
def pictures(tmp_path):
    made = SessionPictures(write_sample(tmp_path / "a.asrs", frames=1024, utterance_frames=256))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("views", "size"),
    [
        (("breakdown",), (640, 400)),
        (("breakdown",), (800, 450)),
        (("cost", "breakdown"), (640, 640)),
        ((), (900, 1000)),
    ],
    ids=str,
)
def test_every_category_and_their_sum_are_in_the_picture(pictures, monkeypatch, views, size):
    drawn: list[Text] = []
    reported: list[str] = []

    def look(sheet: QWidget, *_: object, **__: object) -> bytes:
        drawn.extend(text for text in texts(sheet) if not text.seen.isEmpty())
        reported.extend(faults(sheet))
        return b""

    monkeypatch.setattr(writers, "_file", look)
    pictures.draw(PictureRequest(views, size=size, scale=1.0), "png")
    shown = [text.text for text in drawn]
    for name in CATEGORIES:
        named = any(text.startswith(CATEGORY_TITLES[name]) for text in shown)
        assert named == (name != THROTTLED), name  # it is named where there is some
    assert [text for text in shown if text.startswith("sum ")]
    assert reported == []
