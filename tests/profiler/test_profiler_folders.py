"""Where sessions and caches go, on the say of the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profiler.files import paths


def test_a_new_session_has_a_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.SESSIONS_VARIABLE, str(tmp_path / "sessions"))
    monkeypatch.setattr(paths.time, "strftime", lambda form: "2026-01-02-030405")
    first = paths.new_session_path("my preset/1")
    assert first == tmp_path / "sessions" / "2026-01-02-030405-my-preset-1.asrs"
    first.touch()
    second = paths.new_session_path("my preset/1")
    assert second.name == "2026-01-02-030405-my-preset-1-2.asrs"


@pytest.mark.skipif("sys.platform != 'linux'")
def test_cache_dir_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASRSCOPE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert paths.cache_dir() == tmp_path / "asrscope"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert paths.cache_dir() == tmp_path / "home" / ".cache" / "asrscope"


@pytest.mark.parametrize(
    ("variable", "made"), [(paths.SESSIONS_VARIABLE, paths.sessions_dir), (paths.CACHE_VARIABLE, paths.cache_dir)]
)
def test_a_folder_that_cannot_be_made_is_named(
    variable: str, made: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(variable, str(tmp_path / "file" / "folder"))
    with pytest.raises(OSError, match=f"set {variable} to a folder"):
        made()


@pytest.fixture
def shared_group() -> Iterator[None]:
    """As where each user has a group of his own, so that what is made belongs to the group too."""
    before = os.umask(0o002)
    yield
    os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_a_folder_of_code_is_made_for_its_owner_alone(tmp_path: Path, shared_group: None) -> None:
    place = paths.own_dir(tmp_path / "cache" / "code")
    assert place.is_dir()
    assert place.stat().st_mode & 0o077 == 0
    assert paths.own_dir(place) == place


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_a_folder_of_code_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code").chmod(mode)
    with pytest.raises(OSError, match="code, which others can write to; remove it, or set"):
        paths.own_dir(tmp_path / "code")
    (tmp_path / "code").chmod(0o755)
    assert paths.own_dir(tmp_path / "code").is_dir()


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_a_folder_of_code_is_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "code").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="others can write to"):
        paths.own_dir(tmp_path / "code")
    monkeypatch.setattr(paths.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(OSError, match="others can write to"):
        paths.own_dir(tmp_path / "elsewhere")
