"""The report in Markdown: what `show` says, tables whatever the names are, and no zero that nobody measured."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QTextDocument, QTextTable
from sample_session import write_sample

from app.cli import main
from app.export import formats, markdown
from app.model import report_lines
from app.model.document import Table
from app.model.report import report
from pipelines import config
from pipelines.config import presets
from profiler.export import formats as of_profiler
from profiler.plain import one_line
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.bench.campaign import sessions

KEPT = sorted((Path(__file__).parents[1] / "data" / "sessions").glob("*.asrs"))
NASTY = "a|b\\|c`d<script>&lt;\n# *e* _f_ [g](h) ![i](j) ~~k~~ \x1b[2J\u202e\r| --- |"


def read(lines: list[str]) -> list[list[list[str]]]:
    """The tables of a page, as another program (Qt's reader of GFM) finds them."""
    page = QTextDocument()
    page.setMarkdown("\n".join(lines), QTextDocument.MarkdownFeature.MarkdownDialectGitHub)
    tables = [frame for frame in page.rootFrame().childFrames() if isinstance(frame, QTextTable)]
    return [
        [
            [found.cellAt(row, column).firstCursorPosition().block().text() for column in range(found.columns())]
            for row in range(found.rows())
        ]
        for found in tables
    ]


def split(line: str) -> list[str]:
    """The cells of a row by the rule of GFM: a bar without a backslash before it parts two."""
    return re.split(r"(?<!\\)\|", line.strip("|"))


def as_read(text: str) -> str:
    return re.sub(" +", " ", one_line(text, markdown.LONGEST)).strip()


def check(lines: list[str]) -> None:
    """Nothing of HTML outside the blocks of code, and every row as wide as the head of its table."""
    width, fence = 0, ""
    for line in lines:
        assert line == one_line(line, 1 << 20)
        if fence or line.startswith("```"):
            fence = "" if line == fence else fence or line.removesuffix("sh")
            continue
        assert "<" not in line
        cells = len(split(line)) if line.startswith("|") else 0
        assert not (width and cells) or cells == width, line
        width = cells
    assert not fence


@pytest.fixture
def sample(tmp_path):
    return write_sample(tmp_path / "sample.asrs", frames=1024)


cells = st.text(max_size=30) | st.text("|\\`<>&\n\r#*_~![]-: a", max_size=12)


@settings(max_examples=30)
@given(st.lists(st.tuples(cells, cells, cells), max_size=4), cells)
def test_a_table_has_the_cells_that_were_put_in(rows, name):
    lines = [f"# {markdown.escaped(name)}", "", *markdown.table(Table("", ("a", "b", "c"), rows))]
    check(lines)
    (found,) = read(lines)
    assert found[0] == ["a", "b", "c"]
    assert found[1:] == [[as_read(cell) or "–" for cell in row] for row in rows]


@example("```")
@example("a ````` b")
@given(st.text("`~ a\n\\<", max_size=20))
def test_nothing_in_a_command_ends_its_block(line):
    lines = markdown.code(line)
    assert len(lines) == 3
    assert lines[2] not in lines[1]
    check(lines)


def test_it_says_what_show_says(sample):
    with Session.open(sample) as session:
        lines, tree = markdown.lines(session), report(session)
    check(lines)
    origin, categories, stages, *_ = read(lines)
    assert ["machine", "Imaginary CPU, 2 cores"] in origin
    for line in report_lines.headline(tree):
        assert any(markdown.escaped(line) in bullet for bullet in lines), line
    known = [(name, seconds) for name, seconds, _ in report_lines.categories(tree) if seconds]
    assert [row[0] for row in categories[1:]] == [name for name, _ in known]
    assert [float(row[1].removesuffix(" s")) for row in categories[1:]] == pytest.approx(
        [seconds for _, seconds in known], abs=5e-4
    )
    assert [row[0] for row in stages[1:]] == [row["name"] for row in tree["stages"]]
    assert [row[-1] for row in stages[1:]] == [as_read(row["sentence"]) for row in tree["stages"]]
    assert any("%" in row[5] and "to" in row[5] for row in stages[1:])
    assert lines[-2] == "asrscope export sample.asrs --markdown OUT"


def test_the_same_session_gives_the_same_bytes(sample, tmp_path, capfd):
    for name in ("a.md", "b.md"):
        assert main.main(["export", str(sample), "--markdown", str(tmp_path / name)]) == 0
    capfd.readouterr()
    assert main.main(["export", str(sample), "--markdown", "-"]) == 0
    written = (tmp_path / "a.md").read_bytes()
    assert written == (tmp_path / "b.md").read_bytes()
    assert written.decode() == capfd.readouterr().out


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_sessions_of_earlier_versions(path):
    with Session.open(path) as session:
        lines = markdown.lines(session)
    check(lines)
    _, categories, stages, *_ = read(lines)
    assert all(float(re.sub("[<s ]", "", row[1])) > 0 for row in (*categories[1:], *stages[1:]))
    # Version 1 counted none.
    counted = not path.stem.startswith("v1")
    assert any("not measured" in line and "other programs" in line for line in lines) != counted


@pytest.mark.parametrize("name", sorted(sessions.PURPOSES))
def test_spoiled_sessions_give_sound_pages(name, tmp_path, monkeypatch):
    from profiler.errors import BadInput

    monkeypatch.chdir(tmp_path)
    sessions.spoiled(name, tmp_path)
    try:
        session = Session.open(tmp_path / sessions.SESSION)
    except (BadInput, OSError):
        return
    with session:
        check(markdown.lines(session))


def strangers(path: Path, meta: dict[str, object], *stages: str) -> Session:
    """A session with such stages, each of which ran for a millisecond."""
    recorder = Recorder()
    writer = SessionWriter(path, recorder, meta)
    lane = recorder.lane("decode", decode=True)
    for frame, name in enumerate(stages):
        start, end = (frame + 1) * 10**6, (frame + 2) * 10**6
        lane.put(recorder.stage(name, "search"), start, end, frame, 1)
        lane.put(recorder.stage("decode", "decode"), start, end, frame, 1)
    writer.close()
    return Session.open(path)


def test_names_of_strangers_stay_in_their_cells(tmp_path):
    meta = {
        "preset": NASTY,
        "machine": {"cpu": NASTY, "cores": 2},
        "versions": {NASTY: NASTY},
        "argv": ["asrscope", "run", "```\n<b>"],
    }
    with strangers(tmp_path / "a`b<c>.asrs", meta, NASTY, "plain") as session:
        lines = markdown.lines(session)
    check(lines)
    origin, _, stages, *_ = read(lines)
    assert [row[0] for row in stages[1:]] == [as_read(NASTY), "plain"]
    assert ["machine", as_read(f"{NASTY}, 2 cores")] in origin
    assert lines[0] == "# a&#96;b&lt;c&gt;.asrs"


def test_an_empty_session_has_no_figures(tmp_path):
    with strangers(tmp_path / "empty.asrs", {}) as session:
        lines = markdown.lines(session)
    check(lines)
    assert "- Nothing was decoded." in lines
    assert not any(re.search(r"\b0\.0", line) for line in lines)
    assert "## Categories" not in lines
    assert "## To record it again" not in lines


def test_the_command_of_a_window_has_preset_and_changes(tmp_path):
    preset = presets.load("gmm")
    tree = config.to_dict(config.replace(preset.config, "search.beam", 9.5))
    meta = {"preset": "gmm", "argv": ["worker.py"], "audio": ["my `` own.wav", "b.wav"]}
    path = tmp_path / "w.asrs"
    writer = SessionWriter(path, Recorder(), meta)
    writer.config(0, 0, tree)
    writer.close()
    with Session.open(path) as session:
        lines = markdown.lines(session)
    check(lines)
    assert "asrscope run --preset gmm --set search.beam=9.5 --audio 'my `` own.wav' b.wav" in lines
    assert "| settings | search.beam=9.5 |" in lines


def test_it_is_offered_with_the_others_by_their_places():
    assert len(formats()) == len(of_profiler()) + 1
    assert formats() == sorted([*of_profiler(), markdown.FORMAT], key=lambda one: one.place)
    for name in ("name", "option", "title", "suffix", "place"):
        assert len({getattr(one, name) for one in formats()}) == len(formats()), name
