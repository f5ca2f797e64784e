"""Pictures of a stretch, a moment or a selection: figures, settings, the command that makes them again; small ones."""

import json
import shlex
from collections.abc import Callable

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QImageReader
from PySide6.QtWidgets import QWidget
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
from app.views.breakdown import BreakdownView
from pipelines import config
from pipelines.audio.word_errors import ErrorCount
from profiler.analysis.categories import CATEGORIES, THROTTLED
from tests.profiler.profiler_sessions import KEPT

FRAMES = 1024


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("s") / "sample.asrs", frames=FRAMES, utterance_frames=256)


@pytest.fixture
def pictures(path):
    made = SessionPictures(path)
    yield made
    made.close()


@pytest.fixture
def telling(monkeypatch):
    """What each picture drawn from now on tells, and where it is."""
    seen: list[tuple[Extent, PictureTexts]] = []
    real = texts_module.picture_texts

    def spy(snapshot: object, place: Extent, command: str) -> PictureTexts:
        found = real(snapshot, place, command)
        seen.append((place, found))
        return found

    monkeypatch.setattr("app.pictures.session.picture_texts", spy)
    return seen


def draw(pictures: SessionPictures, **wanted: object) -> bytes:
    options = {"views": ("words",), "scale": 1.0, **wanted}
    return pictures.draw(PictureRequest(**options), "png")


def test_times_and_ranges_are_read():
    for text, seconds in (("12.5", 12.5), ("1:02.5", 62.5), ("1:00:01", 3601), (".5", 0.5), (" 7 ", 7), ("90", 90)):
        assert read_seconds(text, "--at") == seconds
    for text, ends in (("1..2", (1, 2)), ("..2", (None, 2)), ("0:01..", (1, None))):
        assert read_range(text) == ends
    for text in ("", "..", "5", "2..1", "1..1", "a..b", "-1..2", "1...2", "nan..2"):
        with pytest.raises(PictureError, match="--range"):
            read_range(text)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--range", "5..90"], "--range 5..90 is not within the session, which is 10.24 s long"),
        (["--range", "x"], "--range must be FROM..TO in seconds"),
        (["--at", "11"], "--at 11 is not within the session, which is 10.24 s long"),
        (["--at", "soon"], "--at must be a time of the session"),
        (["--range", "5..8", "--at", "9"], "--at 9 is not within --range 5..8"),
        (["--select", "nothing"], "--select takes FROM..TO in seconds, an utterance, a stage or a bookmark"),
        (["--select", "8..99"], "--select 8..99 is not within the session"),
        (["--select", "8..9", "--at", "3"], "begins after the cursor"),
        (["--view", "nope"], "the views are cost, "),
        (["--scale", "many"], "--scale must be a number"),
        (["--scale", "100"], "scale is 0.25 to 8"),
        (["--size", "130x130"], "needs at least"),
        (["--view", "system", "--size", "400x300"], "needs at least 400×"),
        (["--view", "statistics", "--size", "400x300"], "needs at least 400×"),
    ],
)
def test_what_cannot_be_is_one_sentence_on_the_command_line(path, tmp_path, capsys, words, says):
    out = tmp_path / "a.png"
    assert main.main(["export", str(path), "--png", str(out), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert not out.exists()


def test_the_command_of_a_picture_makes_it_again(pictures, path, tmp_path, monkeypatch):
    first = tmp_path / "first.png"
    wanted = PictureRequest(
        ("words", "cost"), (900, 640), 1.5, "light", (2.0, None), 9.0,
        ("synthetic-0001", "score.exp"),
    )  # fmt: skip
    pictures.write(wanted, first)
    command = json.loads(QImageReader(str(first)).text("asrscope"))["drawn by"]
    assert command == (
        "asrscope export sample.asrs --png OUT --view cost --view words --size 900x640 --scale 1.5 "
        "--theme light --range 2.. --at 9 --select synthetic-0001 --select score.exp"
    )
    monkeypatch.chdir(path.parent)
    again = tmp_path / "again.png"
    words = [str(again) if word == "OUT" else word for word in shlex.split(command)]
    assert main.main(words[1:]) == 0
    assert again.read_bytes() == first.read_bytes()


def test_the_caption_names_the_stretch_and_the_cursor_where_they_are_not_all():
    for shown, cursor, says in (
        ((0, FRAMES), FRAMES, ""),
        ((0, FRAMES), 500, "cursor at 0:05.0"),
        ((100, 700), FRAMES, "0:01.0 – 0:07.0"),
        ((100, FRAMES), FRAMES, "0:01.0 – 0:10.2"),
        ((100, 700), 700, "0:01.0 – 0:07.0"),
        ((100, 700), 500, "0:01.0 – 0:07.0, cursor at 0:05.0"),
    ):
        assert texts_module._extent_text(Extent(*shown, cursor, FRAMES, None, "", None)) == says


def figures(headline: Headline) -> dict[str, tuple[str, str]]:
    return {figure.name: (figure.value, figure.scope) for figure in headline.figures}


def test_figures_are_of_what_is_shown(pictures, telling):
    for options in ({}, {"range_s": (0.0, 2.0)}, {"range_s": (8.0, None)}, {"at_s": 3.0}):
        draw(pictures, **options)
    whole, early, late, then = (figures(reported.headline) for _, reported in telling)
    assert whole["RTF"][1] == "since skip ×2", "as in the window"
    assert early["RTF"][1] == "0:00.00 – 0:02.00"
    assert late["RTF"][1].startswith("0:08.00 – 0:10.2")
    # Selection and skipping came in between: scoring is cheaper at the end.
    assert max(float(late["RTF"][0]), float(whole["RTF"][0])) < float(early["RTF"][0])
    assert float(then["RTF"][0]) != float(whole["RTF"][0])


def test_words_are_counted_where_figures_are(switched, telling):
    """Six words in each of the two utterances of 6 s, the last of each missing."""
    pictures = SessionPictures(switched)
    for options in ({}, {"range_s": (0.0, 6.0)}, {"select": ("0..3",)}, {"at_s": 1.0}):
        draw(pictures, **options)
    pictures.close()
    reported = [figures(reported.headline)["WER"] for _, reported in telling]
    assert reported[1] == ("16.7 %", "6 words")
    assert reported[2][0] == "0.0 %"
    assert reported[2][1] == "3 words"
    assert reported[3] == ("–", "")


def test_a_selection_drives_the_figures(pictures, telling):
    draw(pictures, select=("1..2",))
    draw(pictures, select=("synthetic-0002",))
    (first, reported), (second, _) = telling
    assert figures(reported.headline)["RTF"][1] == "0:01.00 – 0:02.00"
    assert first.selected == (100, 200)
    assert second.selected == (512, 768)
    assert reported.origin["selection"] == "1..2"


def test_a_stage_is_explained(pictures, telling, monkeypatch):
    explained = []
    real = BreakdownView.settle

    def settle(view: BreakdownView) -> None:
        real(view)
        line = view.tree.explained()
        explained.append(line and line.name)

    monkeypatch.setattr(BreakdownView, "settle", settle)
    draw(pictures, views=("breakdown",))
    draw(pictures, views=("breakdown",), select=("score.exp",))
    assert explained[-1] == "score.exp"
    assert explained[0] != "score.exp"


def test_the_charts_show_the_stretch(pictures, monkeypatch):
    seen = []
    names = tuple(name for name in VIEWS if name in PICTURES)
    for name in names:
        cls = VIEWS[name].load()
        real = cls.settle

        def settle(view: object, real: Callable[[object], None] = real) -> None:
            real(view)
            seen.append((view.axis.visible, view.axis.cursor, view.axis.selected))

        monkeypatch.setattr(cls, "settle", settle)
    draw(pictures, views=names, size=(1600, 3000), range_s=(2.0, 6.0), at_s=5.0, select=("3..4",))
    assert len(seen) >= len(names)
    assert set(seen) == {((2.0, 6.0), 5.0, (3.0, 4.0))}


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    """Twelve seconds of the preset gmm; selection is switched on at 4 s and off again at 8 s."""
    start = config.Config()
    made = Recording(tmp_path_factory.mktemp("made") / "switched.asrs")
    made.write(400)
    on = config.replace(start, "gmm.selection.enabled", True)
    made.writer.config(1, 400, config.to_dict(on))
    made.write(400)
    made.writer.config(2, 800, config.to_dict(start))
    made.write(400)
    made.close()
    return made.path


@pytest.mark.parametrize(
    ("options", "on", "text", "changes"),
    [
        ({}, False, "since 0:08.0", ["0:04.0", "0:08.0"]),
        ({"at_s": 6.0}, True, "since 0:04.0", ["0:04.0"]),
        ({"range_s": (5.0, 9.0)}, False, "since 0:08.0", ["0:08.0"]),
        ({"range_s": (5.0, 9.0), "at_s": 7.0}, True, "", []),
        ({"select": ("5..7",)}, True, "", ["0:04.0", "0:08.0"]),
    ],
)
def test_settings_are_those_then_in_force(switched, telling, options, on, text, changes):
    pictures = SessionPictures(switched)
    draw(pictures, **options)
    pictures.close()
    ((_, reported),) = telling
    (toggle, *_) = reported.headline.toggles
    assert toggle.title == "Gaussian selection"
    assert toggle.on is on
    assert text in toggle.text
    assert ("since" in toggle.text) == bool(text)
    assert ("gmm.selection.enabled=true" in reported.caption[0]) is on
    assert f"gmm.selection.enabled={str(on).lower()}" in reported.origin["settings"]
    assert reported.origin.get("changes", "").count(" at ") == len(changes)
    for moment in changes:
        assert f"at {moment}" in reported.caption[0]


@pytest.fixture(scope="module")
def flipped(tmp_path_factory):
    """The same 6 s with selection off, then on: requested at 5.5 s, applied at 6 s."""
    made = Recording(tmp_path_factory.mktemp("made") / "flipped.asrs")
    made.write(600)
    key = "gmm.selection.enabled"
    marker = made.writer.marker("option", "selection on", 550, key, True)
    made.epoch = made.lane.epoch = 1
    made.writer.config(1, 600, config.to_dict(config.replace(config.Config(), key, True)))
    made.writer.marker_applied(marker, 600, 1)
    made.write(600)
    made.close()
    return made.path


SAME = "no difference (1.00 to 1.00) · 1 → 1 errors of 6 (the same)"


@pytest.mark.parametrize(
    ("options", "effect"),
    [
        ({"at_s": 5.0}, None),
        ({"at_s": 5.8}, "preparing …"),
        ({"at_s": 6.5}, "no comparison yet"),
        ({}, SAME),
        ({"select": ("1..3",)}, None),
        ({"select": ("7..12",)}, SAME),
    ],
)
def test_the_effect_of_a_toggle_is_next_to_it_as_in_the_window(flipped, telling, options, effect):
    pictures = SessionPictures(flipped)
    draw(pictures, **options)
    pictures.close()
    ((_, reported),) = telling
    toggle, skipping, *_ = reported.headline.toggles
    assert bool(toggle.effect) == bool(effect)
    if toggle.effect is not None and effect is not None:
        assert toggle.effect.text.endswith(effect)
        effect = toggle.effect.text
    assert skipping.effect is None
    assert reported.origin.get("effects") == (effect and f"Gaussian selection: {effect}")
    sheet = ViewPicture((), reported.headline, (), 1280)
    lay_out(sheet, QSize(1280, 800))
    drawn = " ".join(text.text for text in texts(sheet))
    assert toggle.effect is None or toggle.effect.brief in drawn
    assert cut_short(sheet) == faults(sheet) == []
    sheet.deleteLater()


def test_the_caption_names_session_machine_drift_and_command(pictures, telling):
    draw(pictures, range_s=(1.0, 2.0))
    ((_, reported),) = telling
    assert "sample.asrs" in reported.caption[1]
    assert "Imaginary CPU, 2 cores" in reported.caption[1]
    assert "drift of the roofs not measured" in reported.caption[1]
    assert reported.caption[2].startswith("asrscope export sample.asrs --png OUT")
    assert reported.origin["range"] == "0:01.00 – 0:02.00"
    assert reported.origin["drawn with"].startswith("Qt 6.")


def test_a_name_that_is_wider_than_a_picture_goes_on_in_the_next_line(qapp):
    line = CaptionLine(f"sample.asrs · {'﷽' * 300} · {'a' * 300}")
    assert line.minimumSizeHint().width() < 200
    assert line.heightForWidth(1600) > line.heightForWidth(20_000)
    line.deleteLater()


def test_a_session_of_another_version_has_no_settings_rather_than_wrong_ones(pictures, telling):
    """The sample's configuration is none of ours."""
    draw(pictures)
    ((_, reported),) = telling
    assert reported.headline.toggles == ()
    assert reported.caption[0] == "settings of another version"


def test_a_picture_says_how_many_utterances_have_a_transcript(telling):
    pictures = SessionPictures(KEPT / "v2-0.1.0.asrs")
    draw(pictures)
    pictures.close()
    ((_, reported),) = telling
    assert figures(reported.headline)["WER"][1] == "3 words; 1 of 2 utterances have a transcript"


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
