"""Where sessions and caches go, on the say of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.files import paths


def test_a_new_session_never_takes_a_name_that_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(paths.SESSIONS_VARIABLE, str(tmp_path / "sessions"))
    monkeypatch.setattr(paths.time, "strftime", lambda form: "2026-01-02-030405")
    first = paths.new_session_path("my preset/1")
    assert first == tmp_path / "sessions" / "2026-01-02-030405-my-preset-1.asrs"
    first.touch()
    second = paths.new_session_path("my preset/1")
    assert second.name == "2026-01-02-030405-my-preset-1-2.asrs"


def test_a_folder_that_cannot_be_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(paths.SESSIONS_VARIABLE, str(tmp_path / "file" / "sessions"))
    with pytest.raises(OSError, match="set ASRSCOPE_SESSIONS to a folder"):
        paths.sessions_dir()
