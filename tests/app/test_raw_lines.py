"""No raw line of a library reaches stderr: what it says is a sentence, said once."""

import json
import sqlite3
import warnings

import pytest
from command_line import asrscope, here
from PySide6.QtCore import qInstallMessageHandler, qWarning
from sample_session import write_sample

from app import application, gui
from app.cli import presets

WORDS = ["दो", "নয়", "ສາມ", "បួន", "བཞི"]
"""Of scripts that want more of a font than glyphs; a machine has letters of few of them."""
FONTS = 'OpenType support missing for "Inter", script {}'


@pytest.fixture
def unwritable(tmp_path):
    """A session whose words no font has, on most machines."""
    path = tmp_path / "s.asrs"
    write_sample(path, frames=512)
    words = [[word, 20 * i, 15] for i, word in enumerate(WORDS)]
    connection = sqlite3.connect(path, isolation_level=None)
    said = " ".join(WORDS)
    connection.execute(
        "UPDATE utterance SET hypothesis=?, reference=?, name=?, words=?", (said, said, WORDS[0], json.dumps(words))
    )
    connection.close()
    return path


@pytest.mark.slow
def test_pictures_of_words_without_a_font_are_drawn_and_said_in_a_sentence(unwritable, tmp_path):
    pictures = [tmp_path / f"p.{kind}" for kind in ("png", "svg", "pdf")]
    options = [word for path in pictures for word in (f"--{path.suffix[1:]}", path)]
    done = asrscope("export", unwritable, *options)
    assert done.returncode == 0, done.stderr
    assert all(path.stat().st_size > 10_000 for path in pictures)
    assert done.stderr in ("", f"asrscope: {application.NO_FONT}\n")


def test_the_window_says_once_that_a_font_is_missing(qtbot, window, monkeypatch):
    monkeypatch.setattr(application, "_passed_on", set())
    notices = window().notices
    with gui.caught(notices):
        for script in range(40):
            qWarning(FONTS.format(script))
        assert not notices.banners, "it may be said while something is painted"
        qtbot.waitUntil(lambda: bool(notices.banners))
    assert [banner.text for banner in notices.banners] == [application.NO_FONT]


def test_what_else_qt_says_is_one_line_each(monkeypatch, capsys):
    monkeypatch.setattr(application, "_passed_on", set())
    useless = "This plugin does not support propagateSizeHints()"
    before = qInstallMessageHandler(None)  # that of the tests, which would be given the rest
    try:
        with application.in_sentences():
            for text in ("one\nand more", useless, "one\nand more", FONTS.format(11), FONTS.format(12)):
                qWarning(text)
    finally:
        qInstallMessageHandler(before)
    assert capsys.readouterr().err.splitlines() == [
        r"asrscope: Qt says: one\nand more",
        f"asrscope: {application.NO_FONT}",
    ]


def test_warnings_of_libraries_are_a_sentence_each(monkeypatch):
    class OfNumba(UserWarning):
        pass

    OfNumba.__module__ = "numba.core.errors"

    def run(arguments: object) -> int:
        warnings.simplefilter("always")
        for _ in range(3):
            warnings.warn("an array\x1b[2J is\nnot contiguous", OfNumba, stacklevel=1)
        place = "/usr/lib/python3/site-packages/torch/nn/functional.py"
        warnings.warn_explicit("old", UserWarning, place, 12)
        return 0

    monkeypatch.setattr(presets, "run", run)
    with warnings.catch_warnings():
        done = here("presets")
    assert done.returncode == 0
    first, second = done.stderr.splitlines()
    assert first.startswith("asrscope: numba warns: an array")
    assert first.isprintable()
    assert second == "asrscope: torch warns: old"
