"""What a session says of itself: sound facts are kept as they are, others left out with a remark."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from profiler_sessions import edit

from profiler.files import paths
from profiler.session.errors import SessionError
from profiler.session.facts import setting
from profiler.session.reader import Session
from tests.bench.campaign import sessions


def tell(path: Path, key: str, text: str) -> None:
    """Put a fact into a session, as JSON text."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (key, text))


def test_every_fact_of_a_run_is_kept_without_a_remark(tmp_path):
    path = tmp_path / "s.asrs"
    path.write_bytes(sessions.full(interleaved=True))
    with Session.open(path) as session:
        assert session.notes == []
        for key, value in {**sessions.FACTS, "ab": sessions.ARMS}.items():
            assert session.meta[key] == value, key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("preset", ["gmm"]),
        ("preset", "x" * 100_000),
        ("argv", "asrscope"),
        ("created_wall", 1e300),
        ("recorder", []),
        ("recorder", {"ns_per_span": "x"}),
        ("recorder", {"ns_per_span": -1}),
        ("recorder", {"counters": [None]}),
        ("scoring", {"senones": -3}),
        ("scoring", {"context": [1]}),
        ("nets", {"base": []}),
        ("drift", {"9" * 5000: 0.1}),
        ("ab", True),
        ("ab", {"measured_from": "0"}),
        ("alternatives/1", {"nbest": [{"hypothesis": 1}]}),
    ],
)
def test_a_fact_of_another_kind_is_left_out_and_said(key, value, small):
    tell(small, key, json.dumps(value))
    with Session.open(small) as session:
        assert key not in session.meta
        (note,) = session.notes
    assert key.partition("/")[0] in note


def test_facts_of_later_versions_are_handed_on(small):
    facts = {"weather": {"rain": [1, 2.5, None]}, "recorder": {"ns_per_thought": "many"}}
    for key, value in facts.items():
        tell(small, key, json.dumps(value))
    # Settings are looked up by key and nothing else.
    edit(small, 'UPDATE config SET tree=\'{"dnn": "x", "block": 16, "search": {"device": "cpu"}}\'')
    with Session.open(small) as session:
        assert facts.items() <= session.meta.items()
        assert session.notes == []
        tree = session.configs[0].tree
    keys = ("block", "search.device", "dnn.net", "search", "gmm.method", "block.x")
    assert [setting(tree, key) for key in keys] == [16, "cpu", *[None] * 4]


@pytest.mark.parametrize("text", ["[" * 600 + "]" * 600, "9" * 400, "NaN", '"\\ud800"', "1e999"])
@pytest.mark.parametrize(
    "place", ["INSERT INTO meta VALUES('weather', ?)", "UPDATE config SET tree=?", "UPDATE marker SET value=?"]
)
def test_json_that_nothing_can_hold_is_refused(text, place, small):
    with closing(sqlite3.connect(small, isolation_level=None)) as connection:
        connection.execute(place, (f'{{"block": {text}}}' if "config" in place else text,))
    with pytest.raises(SessionError, match="damaged") as caught:
        Session.open(small)
    assert len(str(caught.value)) < len(str(small)) + 250


@pytest.mark.parametrize("value", ["[]", "null", "[1, 2]"])
def test_a_setting_that_is_no_single_value_is_refused(value, small):
    edit(small, f'UPDATE config SET tree=\'{{"search": {{"beam": {value}}}}}\'')
    with pytest.raises(SessionError, match="beam"):
        Session.open(small)


def test_a_new_session_has_a_new_name(tmp_path, monkeypatch):
    monkeypatch.setenv(paths.SESSIONS_VARIABLE, str(tmp_path / "sessions"))
    monkeypatch.setattr(paths.time, "strftime", lambda form: "2026-01-02-030405")
    first = paths.new_session_path("my preset/1")
    assert first == tmp_path / "sessions" / "2026-01-02-030405-my-preset-1.asrs"
    first.touch()
    assert paths.new_session_path("my preset/1").name == "2026-01-02-030405-my-preset-1-2.asrs"


@pytest.mark.parametrize(
    ("variable", "made"), [(paths.SESSIONS_VARIABLE, paths.sessions_dir), (paths.CACHE_VARIABLE, paths.cache_dir)]
)
def test_a_folder_that_cannot_be_made_is_named(variable, made, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(variable, str(tmp_path / "file" / "folder"))
    with pytest.raises(OSError, match=f"set {variable} to a folder"):
        made()


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_a_folder_of_code_is_its_owners_alone(tmp_path, monkeypatch):
    # As where each user has a group of his own, so that what is made belongs to the group too.
    before = os.umask(0o002)
    try:
        place = paths.own_dir(tmp_path / "cache" / "code")
    finally:
        os.umask(before)
    assert place.is_dir()
    assert place.stat().st_mode & 0o077 == 0
    assert paths.own_dir(place) == place
    for mode in (0o720, 0o702):
        place.chmod(mode)
        with pytest.raises(OSError, match="code, which others can write to; remove it, or set"):
            paths.own_dir(place)
    place.chmod(0o755)
    assert paths.own_dir(place) == place
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(OSError, match="others can write to"):
        paths.own_dir(tmp_path / "link")
    monkeypatch.setattr(paths.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(OSError, match="others can write to"):
        paths.own_dir(place)
