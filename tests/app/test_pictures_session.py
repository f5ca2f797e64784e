"""Pictures of a stretch, a moment or a selection: figures, settings, the command that makes them again; small ones."""

import json
import shlex
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QImageReader
from PySide6.QtWidgets import QWidget
from rendered import desk_picture, views_of
from sample_session import write_sample
from text_geometry import Text, cut_short, faults, texts
from window_recording import Recording

from app.cli import main
from app.model.effects import Effect
from app.pictures import texts as texts_module
from app.pictures import writers
from app.pictures.request import Extent, PictureError, PictureRequest, read_range, read_seconds
from app.pictures.session import SessionPictures
from app.pictures.texts import Figure, Headline, PictureTexts, ToggleState
from app.pictures.view_picture import ViewPicture
from app.pictures.writers import CaptionLine, lay_out
from app.style.theme import CATEGORY_TITLES
from app.views import PICTURES, VIEWS
from pipelines import config
from pipelines.audio.word_errors import ErrorCount
from profiler.analysis.categories import CATEGORIES, THROTTLED
from tests.each import each
from tests.profiler.profiler_sessions import KEPT

FRAMES = 1024
Drawn = Callable[..., tuple[Extent, PictureTexts]]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("s") / "sample.asrs", frames=FRAMES, utterance_frames=256)


@pytest.fixture
def drawn(monkeypatch, qapp) -> Drawn:
    """Draw a picture of a session; what is in it, and what its texts are."""
    seen: list[tuple[Extent, PictureTexts]] = []
    real = texts_module.picture_texts

    def spy(snapshot: object, place: Extent, command: str) -> PictureTexts:
        found = real(snapshot, place, command)
        seen.append((place, found))
        return found

    def draw(session: Path, **wanted: object) -> tuple[Extent, PictureTexts]:
        with closing(SessionPictures(session)) as pictures:
            pictures.draw(PictureRequest(("words",), scale=1.0, **wanted), "png")
        return seen.pop()

    monkeypatch.setattr("app.pictures.session.picture_texts", spy)
    return draw


def test_times_and_ranges_are_read():
    for text, seconds in (("12.5", 12.5), ("1:02.5", 62.5), ("1:00:01", 3601), (".5", 0.5), (" 7 ", 7)):
        assert read_seconds(text, "--at") == seconds
    for text, ends in (("1..2", (1, 2)), ("..2", (None, 2)), ("0:01..", (1, None))):
        assert read_range(text) == ends
    for text in ("", "..", "5", "2..1", "1..1", "a..b", "-1..2", "1...2", "nan..2"):
        with pytest.raises(PictureError, match="--range"):
            read_range(text)


@each(
    "words, says",
    [
        (["--range", "5..90"], "--range 5..90 is not within the session, which is 10.24 s long"),
        (["--range", "x"], "--range must be FROM..TO in seconds"),
        (["--at", "11"], "--at 11 is not within the session"),
        (["--at", "soon"], "--at must be a time of the session"),
        (["--range", "5..8", "--at", "9"], "--at 9 is not within --range 5..8"),
        (["--select", "nothing"], "--select takes FROM..TO in seconds, an utterance, a stage or a bookmark"),
        (["--select", "8..99"], "--select 8..99 is not within the session"),
        (["--select", "8..9", "--at", "3"], "begins after the cursor"),
        (["--view", "nope"], "the views are cost, "),
        (["--scale", "many"], "--scale must be a number"),
        (["--scale", "100"], "scale is 0.25 to 8"),
        (["--view", "system", "--size", "400x300"], "needs at least 400×"),
    ],
)
def test_what_cannot_be_is_one_sentence_on_the_command_line(path, tmp_path, capsys, words, says):
    out = tmp_path / "a.png"
    assert main.main(["export", str(path), "--png", str(out), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert not out.exists()


def test_the_command_of_a_picture_makes_it_again(path, tmp_path, monkeypatch, qapp):
    first, again = tmp_path / "first.png", tmp_path / "again.png"
    selected = ("synthetic-0001", "score.exp")
    desk_picture(path, first, PictureRequest(("words", "cost"), (900, 640), 1.5, "light", (2.0, None), 9.0, selected))
    command = json.loads(QImageReader(str(first)).text("asrscope"))["drawn by"]
    assert command == (
        "asrscope export sample.asrs --png OUT --view cost --view words --size 900x640 --scale 1.5 "
        "--theme light --range 2.. --at 9 --select synthetic-0001 --select score.exp"
    )
    monkeypatch.chdir(path.parent)
    words = [str(again) if word == "OUT" else word for word in shlex.split(command)]
    assert main.main(words[1:]) == 0
    assert again.read_bytes() == first.read_bytes()


def figure(drawn: tuple[Extent, PictureTexts], name: str) -> tuple[str, str]:
    """The value of a figure of the headline, and of what it is."""
    (found,) = (one for one in drawn[1].headline.figures if one.name == name)
    return found.value, found.scope


def test_figures_are_of_what_is_shown(path, drawn):
    wanted = ({}, {"range_s": (0.0, 2.0)}, {"range_s": (8.0, None)}, {"at_s": 3.0}, {"select": ("1..2",)})
    whole, early, late, then, part = (figure(drawn(path, **options), "RTF") for options in wanted)
    assert [of for _, of in (whole, early, part)] == ["since skip ×2", "0:00.00 – 0:02.00", "0:01.00 – 0:02.00"]
    assert late[1].startswith("0:08.00 – 0:10.2")
    # Scoring is cheaper at the end, with selection and skipping.
    assert max(float(late[0]), float(whole[0])) < float(early[0])
    assert then[0] != whole[0]
    assert drawn(path, select=("synthetic-0002",))[0].selected == (512, 768)


def test_words_are_counted_where_figures_are(switched, drawn):
    """Six words in each of the two utterances of 6 s, the last of each missing."""
    assert figure(drawn(switched, range_s=(0.0, 6.0)), "WER") == ("16.7 %", "6 words")
    assert figure(drawn(switched, select=("0..3",)), "WER") == ("0.0 %", "3 words")
    assert figure(drawn(switched, at_s=1.0), "WER") == ("–", "")
    # Of a session with only one transcript for two utterances.
    assert figure(drawn(KEPT / "v2-0.1.0.asrs"), "WER")[1] == "3 words; 1 of 2 utterances have a transcript"


def test_the_views_show_the_stretch_and_explain_the_stage(path, qapp, monkeypatch):
    names = tuple(name for name in VIEWS if name in PICTURES)
    wanted = PictureRequest(names, (1600, 3000), 1.0, "dark", (2.0, 6.0), 5.0, ("3..4", "score.exp"))
    views = views_of(path, wanted, monkeypatch)
    assert tuple(views) == names
    assert {(v.axis.visible, v.axis.cursor, v.axis.selected) for v in views.values()} == {((2.0, 6.0), 5.0, (3.0, 4.0))}
    assert views["breakdown"].tree.explained().name == "score.exp"


SELECTION = "gmm.selection.enabled"


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    """Twelve seconds of the preset gmm; selection is switched on at 4 s and off again at 8 s."""
    made = Recording(tmp_path_factory.mktemp("made") / "switched.asrs")
    made.write(400)
    for epoch, on in ((1, True), (2, False)):
        made.writer.config(epoch, 400 * epoch, config.to_dict(config.replace(config.Config(), SELECTION, on)))
        made.write(400)
    made.close()
    return made.path


@each(
    "options, on, text, changes",
    [
        ({}, False, "since 0:08.0", ["0:04.0", "0:08.0"]),
        ({"at_s": 6.0}, True, "since 0:04.0", ["0:04.0"]),
        ({"range_s": (5.0, 9.0)}, False, "since 0:08.0", ["0:08.0"]),
        ({"range_s": (5.0, 9.0), "at_s": 7.0}, True, "", []),
        ({"select": ("5..7",)}, True, "", ["0:04.0", "0:08.0"]),
    ],
)
def test_settings_are_those_then_in_force(switched, drawn, options, on, text, changes):
    _, reported = drawn(switched, **options)
    toggle = reported.headline.toggles[0]
    assert (toggle.title, toggle.on) == ("Gaussian selection", on)
    assert text in toggle.text
    assert ("since" in toggle.text) == bool(text)
    assert (f"{SELECTION}=true" in reported.caption[0]) is on
    assert f"{SELECTION}={str(on).lower()}" in reported.origin["settings"]
    assert reported.origin.get("changes", "").count(" at ") == len(changes)
    assert all(f"at {moment}" in reported.caption[0] for moment in changes)


@pytest.fixture(scope="module")
def flipped(tmp_path_factory):
    """The same 6 s with selection off, then on: requested at 5.5 s, applied at 6 s."""
    made = Recording(tmp_path_factory.mktemp("made") / "flipped.asrs")
    made.write(600)
    marker = made.writer.marker("option", "selection on", 550, SELECTION, True)
    made.epoch = made.lane.epoch = 1
    made.writer.config(1, 600, config.to_dict(config.replace(config.Config(), SELECTION, True)))
    made.writer.marker_applied(marker, 600, 1)
    made.write(600)
    made.close()
    return made.path


SAME = "no difference (1.00 to 1.00) · 1 → 1 errors of 6 (the same)"


@each(
    "options, effect",
    [
        ({"at_s": 5.0}, None),
        ({"at_s": 5.8}, "preparing …"),
        ({"at_s": 6.5}, "no comparison yet"),
        ({}, SAME),
        ({"select": ("1..3",)}, None),
        ({"select": ("7..12",)}, SAME),
    ],
)
def test_the_effect_of_a_toggle_is_next_to_it_as_in_the_window(flipped, drawn, options, effect):
    _, reported = drawn(flipped, **options)
    toggle, skipping, *_ = reported.headline.toggles
    assert skipping.effect is None
    assert bool(toggle.effect) == bool(effect)
    assert (reported.origin.get("effects") or "").startswith("Gaussian selection: " if effect else "")
    drawn = sheet_texts(reported.headline, QSize(1280, 800))
    if toggle.effect is not None:
        assert toggle.effect.text.endswith(effect)
        assert reported.origin["effects"].endswith(toggle.effect.text)
        assert toggle.effect.brief in drawn


def sheet_texts(headline: Headline, size: QSize) -> str:
    """The texts of a picture with nothing but a headline, none of which is cut short or overlaps another."""
    sheet = ViewPicture((), headline, (), size.width())
    lay_out(sheet, size)
    assert cut_short(sheet) == faults(sheet) == []
    drawn = " ".join(text.text for text in texts(sheet))
    sheet.deleteLater()
    return drawn


def test_the_caption_names_session_stretch_machine_drift_and_command(path, drawn):
    _, reported = drawn(path, range_s=(1.0, 2.0), at_s=1.5)
    assert "0:01.0 – 0:02.0, cursor at 0:01.5" in reported.headline.subtitle
    for text in ("sample.asrs", "Imaginary CPU, 2 cores", "drift of the roofs not measured"):
        assert text in reported.caption[1]
    assert reported.caption[2].startswith("asrscope export sample.asrs --png OUT")
    assert reported.origin["range"] == "0:01.00 – 0:02.00"
    assert reported.origin["drawn with"].startswith("Qt 6.")
    # The sample's configuration is none of ours.
    assert reported.headline.toggles == ()
    assert reported.caption[0] == "settings of another version"
    _, whole = drawn(path)
    assert "cursor" not in whole.headline.subtitle


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


@each("width", [600, 640, 720, 799, 800, 900, 960, 1000, 1200, 1279, 1280, 1600])
def test_the_headline_is_whole(qapp, width):
    drawn = sheet_texts(DEMO, QSize(width, 500))
    assert "4.2× faster (4.1–4.3)" in drawn
    assert "105 words under these settings" in drawn


def test_lines_of_the_caption_break_within_long_names_and_not_before_a_unit(qapp):
    line = CaptionLine(f"sample.asrs · {'﷽' * 300} · {'a' * 300}")
    assert line.minimumSizeHint().width() < 200
    assert line.heightForWidth(1600) > line.heightForWidth(20_000)
    line.deleteLater()
    line = CaptionLine("drift of the roofs at most 2.1 %")
    whole = line.fontMetrics().horizontalAdvance(line.text())
    for width in range(whole // 2, whole):
        line.resize(width, 200)
        assert [text for text in texts(line) if text.text.strip() == "%"] == [], width
    line.deleteLater()


@each("views, size", [(("breakdown",), (640, 400)), (("cost", "breakdown"), (640, 640)), ((), (900, 1000))])
def test_every_category_and_their_sum_are_in_the_picture(path, monkeypatch, qapp, views, size):
    drawn: list[Text] = []

    def look(sheet: QWidget, *_: object, **__: object) -> bytes:
        drawn.extend(text for text in texts(sheet) if not text.seen.isEmpty())
        assert faults(sheet) == []
        return b""

    monkeypatch.setattr(writers, "_file", look)
    with closing(SessionPictures(path)) as pictures:
        pictures.draw(PictureRequest(views, size=size, scale=1.0), "png")
    shown = [text.text for text in drawn]
    for name in CATEGORIES:
        named = any(text.startswith(CATEGORY_TITLES[name]) for text in shown)
        assert named == (name != THROTTLED), name  # it is named where there is some
    assert [text for text in shown if text.startswith("sum ")]
