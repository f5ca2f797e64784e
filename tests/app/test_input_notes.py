"""What was done to the input is said: in the report, as text and as JSON, and once in the window."""

import json
import re
import shutil
from pathlib import Path

import pytest
from command_line import here
from pytestqt.qtbot import QtBot

from app.model import report_lines
from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis
from app.window.notices import InputNotes, Notices
from tests.profiler.profiler_sessions import KEPT, edit


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Two utterances, the first of 8 kHz in stereo, the second no sentence of the grammar; one has a transcript."""
    path = tmp_path / "kept.asrs"
    shutil.copy(KEPT / "v2-0.1.0.asrs", path)
    edit(path, """UPDATE meta SET value='["3 of 6 words have no pronunciation"]' WHERE key='notes'""")
    return path


def test_commands_say_it(session: Path) -> None:
    text = here("show", session).stdout
    assert "1 error in 3 words; 1 of 2 utterances have a transcript" in text
    assert "note: 3 of 6 words have no pronunciation" in text
    assert "note: kal-8000-stereo: mixed down from 2 channels" in text
    assert "yes of  (no sentence of the grammar)" in text
    assert "yes of course not  (no sentence" not in text
    text = here("report", session).stdout
    assert "1 of 2 utterances have a transcript" in text
    assert "kal-8000-stereo: mixed down from 2 channels" in text
    compared = here("compare", session, session, "--json").stdout
    assert json.loads(compared)["transcribed"] == {"utterances": 1, "of": 2}
    text = here("compare", session, session).stdout
    assert re.search(r"in B \(\d errors?\); 1 of 2 utterances have a transcript", text)


def rows(*notes: tuple[str, str]) -> list[dict[str, object]]:
    return [{"id": name, "notes": [note] if note else []} for name, note in notes]


def test_a_note_of_many_utterances_is_one_line() -> None:
    tree = {"notes": [], "utterances": rows(*((name, "8000 Hz") for name in "abcde"), ("f", ""))}
    assert report_lines.notes(tree) == ["a, b, c and 2 more: 8000 Hz"]
    tree["utterances"] = rows(*((name, "8000 Hz") for name in "abcde"))
    assert report_lines.notes(tree) == ["all 5 utterances: 8000 Hz"]


def test_the_window_says_it_once(qtbot: QtBot, session: Path) -> None:
    notices, playhead = Notices(), Playhead(TimeAxis())
    qtbot.addWidget(notices)
    InputNotes(playhead, notices)
    playhead.open(session)
    qtbot.waitUntil(lambda: bool(notices.banners))
    (banner,) = notices.banners
    assert "3 of 6 words have no pronunciation" in banner.text
    assert "kal-8000-stereo: mixed down from 2 channels" in banner.text
    playhead.seek(0)
    qtbot.wait(200)
    assert len(notices.banners) == 1
    playhead.close()
