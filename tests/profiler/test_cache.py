"""The cache: what is kept is found whole or not at all, whatever lies in its place; what goes and what stays."""

import json
import os
import random
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.arrays import Array
from profiler.files import cache

ARRAYS: dict[str, Array] = {
    "means": np.arange(60, dtype=np.float32).reshape(3, 4, 5),
    "which": np.array([[7]], np.int64),
    "none": np.empty((0, 3), np.uint8),
    "on": np.array([True, False, True]),
}
ABOUT = {"origin": "a test", "n": 3}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / cache.MODELS


def same(cached: cache.Kept | None) -> bool:
    if cached is None:
        return False
    found, wanted = ({n: (a.dtype, a.shape, a.tobytes()) for n, a in of.items()} for of in (cached.arrays, ARRAYS))
    return dict(cached.about) == ABOUT and found == wanted


def kept() -> Path:
    cache.keep(cache.MODELS, "x", ARRAYS, ABOUT)
    return cache.path_of(cache.MODELS, "x")


def test_what_is_kept_is_found_mapped_and_cannot_be_written():
    assert cache.find(cache.MODELS, "x") is None
    path = kept()
    found = cache.find(cache.MODELS, "x")
    assert same(found)
    means: Any = found.arrays["means"]
    assert not means.flags.writeable
    while isinstance(means.base, np.ndarray):
        means = means.base
    assert isinstance(means, np.memmap)
    assert [*path.parent.iterdir()] == [path]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_changed_byte_is_seen(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "flipped"
    cache.write(path, ARRAYS, ABOUT)
    content = bytearray(path.read_bytes())
    how = data.draw(st.sampled_from(["change", "cut", "grow"]))
    at = data.draw(st.integers(0, len(content) - 1))
    if how == "change":
        content[at] ^= data.draw(st.integers(1, 255))
    elif how == "cut":
        del content[at:]
    else:
        content += bytes(at + 1)
    path.write_bytes(content)
    with pytest.raises(cache.CacheError) as caught:
        cache.read(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_files_and_pieces_that_change_places_are_seen(tmp_path):
    kept().rename(cache.path_of(cache.MODELS, "y"))
    assert cache.find(cache.MODELS, "y") is None
    path = tmp_path / "large"
    values = np.random.default_rng(0).integers(0, 255, 3 * cache.PIECE, np.uint8)
    cache.write(path, {"values": values}, {})
    np.testing.assert_array_equal(cache.read(path).arrays["values"], values)
    content = bytearray(path.read_bytes())
    first, second = (content[at : at + cache.PIECE] for at in (cache.PIECE, 2 * cache.PIECE))
    content[cache.PIECE : 3 * cache.PIECE] = second + first
    path.write_bytes(content)
    with pytest.raises(cache.CacheError, match="digest"):
        cache.read(path)


FORGED: list[Any] = [
    None, [], {}, {"name": "x.kept", "arrays": [], "about": {}}, {"name": "x.kept", "arrays": {}, "about": 3},
    *({"name": "x.kept", "about": {}, "arrays": {"a": place}} for place in (
        3, [], ["<f4", [1 << 62], 0], ["<f4", [-1], 0], ["<f4", [1], -4], ["<f4", [1], 1 << 70], ["O", [1], 0],
        ["V8", [1], 0], ["<f4,<f4", [1], 0], ["nothing", [1], 0], ["<f4", ["1"], 0], ["<f4", [0, 10**30], 0],
        ["<f4", [1] * 99, 0], [None, [1], 0],
    )),
]  # fmt: skip


@pytest.mark.parametrize("header", FORGED)
def test_a_header_with_the_right_digest_that_lies_is_refused(folder, header):
    """A digest proves a file whole, not honest."""
    path = cache.path_of(cache.MODELS, "x")
    folder.mkdir(parents=True)
    text = json.dumps(header).encode()
    facts = struct.pack("<8sII", cache.MAGIC, cache.LAYOUT, len(text))
    content = facts + bytes(32) + text
    content += bytes(-len(content) % 64) + bytes(64)
    digest = cache._digest(np.frombuffer(content, np.uint8))
    path.write_bytes(facts + digest + content[48:])
    with pytest.raises(cache.CacheError):
        cache.read(path)


PUT: dict[str, Callable[[Path, Path], object]] = {
    "pipe": lambda path, aside: os.mkfifo(path),
    "folder": lambda path, aside: [path.mkdir(), (path / "means.npy").write_bytes(b"half")],
    "link": lambda path, aside: path.symlink_to(aside),
    "dangling": lambda path, aside: path.symlink_to(aside.with_name("nowhere")),
    "device": lambda path, aside: path.symlink_to("/dev/zero"),
    "empty": lambda path, aside: path.touch(),
    "sparse": lambda path, aside: [path.touch(), os.truncate(path, 1 << 42)],
    "other": lambda path, aside: path.write_bytes(b"PK\x03\x04" * 99),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("how", PUT)
def test_whatever_lies_in_its_place_is_replaced(tmp_path, how):
    path, aside = kept(), tmp_path / "x.kept"
    cache.write(aside, ARRAYS, {"origin": "somebody else"})
    before = aside.read_bytes()
    path.unlink()
    PUT[how](path, aside)
    assert cache.find(cache.MODELS, "x") is None
    kept()
    assert same(cache.find(cache.MODELS, "x"))
    assert not path.is_symlink()
    assert aside.read_bytes() == before
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("how", ["file", "denied"])
def test_unwritable_cache_keeps_none(tmp_path, monkeypatch, how):
    root = tmp_path / "theirs"
    if how == "file":
        root.write_text("")
    else:
        root.mkdir(mode=0o500)
        if os.access(root, os.W_OK):
            pytest.skip("this user may write everywhere")
    monkeypatch.setenv("ASRSCOPE_CACHE", str(root))
    kept()
    assert cache.find(cache.MODELS, "x") is None
    assert (cache.entries(), cache.empty()) == ([], 0)


def aged(kind: str, name: str, age: float) -> Path:
    path = cache.path_of(kind, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(1000))
    os.utime(path, (1e9 - age, 1e9 - age))
    return path


def test_the_least_recently_used_go_first(folder, monkeypatch):
    new = aged(cache.GRAPHS, "new", 0)
    older = aged(cache.SELECTION, "older", 1)
    used = aged(cache.GRAPHS, "used", 2)
    oldest = aged(cache.MODELS, "oldest", 3)
    precious = [folder / "my-model", folder / "note.txt"]
    precious[0].mkdir()
    precious[1].write_bytes(bytes(9000))
    cache.used(used)
    monkeypatch.setattr(cache, "LIMIT_BYTES", 3000)
    cache.evict(keep=oldest)
    assert {entry.path for entry in cache.entries()} == {new, used, oldest}
    assert not older.exists()
    assert all(path.exists() for path in precious)
    # The one in use stays even when it alone is too large.
    monkeypatch.setattr(cache, "LIMIT_BYTES", 10)
    cache.evict(keep=oldest)
    assert [entry.path for entry in cache.entries()] == [oldest]


def test_emptying_follows_no_link_and_leaves_what_is_not_ours(tmp_path, folder):
    # What killed processes left goes after a day.
    folder.mkdir(parents=True)
    old, new = folder / ".draft-old", folder / ".unfinished-new"
    old.write_bytes(b"half")
    new.mkdir()
    os.utime(old, (0, 0))
    path = kept()
    assert (old.exists(), new.exists()) == (False, True)
    new.rmdir()
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "precious").write_text("mine")
    (folder / "folder.kept").symlink_to(aside)
    (folder / "linked.kept").symlink_to(aside / "precious")
    trained = folder.parent / "training" / "x.kept"
    trained.parent.mkdir()
    trained.write_bytes(b"hours")
    size = path.stat().st_size
    assert cache.empty() >= size
    assert list(folder.iterdir()) == []
    assert (aside / "precious").read_text() == "mine"
    assert trained.exists()


def test_racing_writers_leave_one_whole_file(folder):
    rng = random.Random(0)
    arrays = [{"a": np.full(rng.randrange(1, 5000), i)} for i in range(24)]

    def turn(i: int) -> bool:
        cache.keep(cache.MODELS, "x", arrays[i], {"i": i})
        found = cache.find(cache.MODELS, "x")
        return found is None or bool((found.arrays["a"] == found.about["i"]).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(turn, range(24)))
    assert cache.find(cache.MODELS, "x") is not None
    assert [file.name for file in folder.iterdir()] == ["x.kept"]
