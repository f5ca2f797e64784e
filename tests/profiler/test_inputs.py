"""Files that somebody names: regular ones of a size that their format can need, and trees that Python can hold."""

import errno
import io
import os
import socket
import sys
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.files import inputs, outputs
from profiler.files.inputs import InputError
from profiler.files.outputs import OutputError, writing
from tests.each import each
from tests.waiting import PATIENCE_S

PIPES = hasattr(os, "mkfifo")


def refused(read: Callable[[], object]) -> str:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with pytest.raises(InputError) as caught:
        read()
    if before:
        assert len(os.listdir("/proc/self/fd")) == before, "a descriptor was left open"
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_a_file_within_its_limit_is_read_whole(tmp_path):
    path = tmp_path / "x"
    for content in (b"", b"a", b"abc"):
        path.write_bytes(content)
        assert inputs.read_bytes(path, "a thing", 3) == content
    path.write_bytes(b"abcd")
    assert "the file has 4 bytes; a thing of more than 3 is not read" in refused(
        lambda: inputs.read_bytes(path, "a thing", 3)
    )


@each(
    "content, message",
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb\nsize 9\n",
            "this is a Git LFS pointer, not the file itself: run `git lfs pull`.",
        ),
        (b"\xef\xbb\xbf\n <!DOCTYPE html>\n<title>404</title>", "this is an HTML page, not the file"),
        (b"<HTML lang=en>", "this is an HTML page, not the file itself"),
    ],
)
def test_pages_instead_of_downloads_are_named(tmp_path, content, message):
    path = tmp_path / "x"
    path.write_bytes(content)
    for read in (inputs.read_bytes, inputs.read_text):
        assert f"{path}: {message}" in refused(lambda read=read: read(path, "a thing", 999))
    path.write_bytes(b"<" + content)
    assert inputs.read_bytes(path, "a thing", 999) == b"<" + content


@pytest.mark.skipif(not PIPES, reason="this system has no named pipes")
def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dead").symlink_to(tmp_path / "nowhere")
    listening = socket.socket(socket.AF_UNIX)
    where = os.getcwd()
    os.chdir(tmp_path)  # a socket's path may have some hundred characters only
    try:
        listening.bind("socket")
    finally:
        os.chdir(where)
        listening.close()
    for name, sentence in {
        "pipe": "this is a pipe or a device; a thing is wanted here",
        "device": "this is a pipe or a device",
        ".": "this is a folder",
        "nothing": "there is no such file",
        "loop": "loop is a link that leads nowhere, so a thing is missing",
        "dead": "dead is a link that leads nowhere, so a thing is missing",
        "socket": "cannot be read here",
        "x\0y": "NUL character",
        "n" * 5000: "cannot be read here: file name too long",
    }.items():
        said = refused(lambda name=name: inputs.read_bytes(tmp_path / name, "a thing", 100))
        assert sentence in said
        assert len(said) < 500


def test_room_is_made_for_what_a_file_has_and_not_for_its_limit(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(1000))
    tracemalloc.start()
    inputs.read_bytes(path, "a thing", 1 << 30)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_file_that_does_not_tell_its_size_is_read_to_its_limit():
    path = "/proc/self/status"
    if not os.path.exists(path):
        pytest.skip("this system has no /proc")
    assert inputs.read_bytes(path, "a thing", 1 << 20).startswith(b"Name:")
    assert "of more than 10 bytes" in refused(lambda: inputs.read_bytes(path, "a thing", 10))


def test_a_file_that_fails_when_it_is_read_is_refused(tmp_path):
    path = tmp_path / "x"
    path.symlink_to("/proc/self/mem")  # a regular file with nothing at its beginning
    if not path.exists():
        pytest.skip("this system has no /proc")
    assert refused(lambda: inputs.read_bytes(path, "a thing", 99)).startswith(f"{path}: a thing cannot be read here: ")


def test_text_is_utf_8_with_or_without_a_mark(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbfgr\xc3\xbcn")
    assert inputs.read_text(path, "a thing", 99) == "grün"
    path.write_bytes(b"one\ntwo \xff")
    assert "line 2 is not UTF-8" in refused(lambda: inputs.read_text(path, "a thing", 99))


DEEP = inputs.TREE_DEPTH
NOT_JSON = ["", "{", "[1,]", "NaN,", "[" * 100_000, '{"a":' * 5000, "9" * 5000, "\ud800"]
NOT_TOML = ["a", "a = ", "a=1\na=2", "a = " + "[" * 5000, "a = " + "9" * 5000, "a.b" * 2000, "\0"]


@each("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_a_byte_order_mark_tells_the_encoding(encoding, tmp_path):
    mark = "" if encoding in ("utf-16", "utf-32") else "\ufeff"
    path = tmp_path / "text"
    path.write_bytes(f"{mark}one\r\n\u0926\u094b \U0001f600".encode(encoding))
    assert inputs.read_text(path, "a thing", 99) == "one\r\n\u0926\u094b \U0001f600"
    broken = "\ufeffone\ntwo\nthr\ud800ee\nfour".encode("utf-16-le", "surrogatepass")
    path.write_bytes(broken)
    assert "line 3 is not UTF-16" in refused(lambda: inputs.read_text(path, "a thing", 99))


@given(lines=st.lists(st.text(st.characters(exclude_characters="\r\n")), min_size=1))
def test_lines_end_at_line_feeds_alone(lines):
    last = [""] if lines[-1] else []
    for end in ("\n", "\r\n"):
        assert inputs.lines_of(end.join([*lines, *last])) == lines[: None if last else -1]
    assert inputs.lines_of("") == []
    assert inputs.lines_of("a\u2028b\x85c\x0bd\x0ce\x1cf\n\nb\rc\n") == ["a\u2028b\x85c\x0bd\x0ce\x1cf", "", "b\rc"]


@each("read, texts", [(inputs.json_tree, NOT_JSON), (inputs.toml_tree, NOT_TOML)])
def test_what_is_no_tree_is_one_sentence(read, texts):
    for text in texts:
        said = refused(lambda text=text: read(text, "here"))
        assert said.startswith("here: ")
        assert len(said) < 400


def test_trees_are_bounded_in_depth_and_integers():
    nested = "[" * DEEP + "0" + "]" * DEEP
    assert inputs.json_tree(nested, "here") is not None
    assert "deep" in refused(lambda: inputs.json_tree(f"[{nested}]", "here"))
    assert inputs.json_tree(str(2**63 - 1), "here") == 2**63 - 1
    assert inputs.json_tree("-9223372036854775807", "here") == -(2**63) + 1
    assert "64 bits" in refused(lambda: inputs.json_tree(str(2**63), "here"))
    assert "bits" in refused(lambda: inputs.json_tree('{"a": [{"b": ' + "9" * 400 + "}]}", "here"))


def test_toml_is_bounded_alike(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("[a]\nb = [1, 2]\n")
    assert inputs.read_toml(path, "a preset") == {"a": {"b": [1, 2]}}
    path.write_text(f"a = {2**63}\n")
    assert "64 bits" in refused(lambda: inputs.read_toml(path, "a preset"))
    path.write_text("\n".join(f"[{'.'.join('x' * (n + 1))}]" for n in [DEEP + 1]))
    assert "deep" in refused(lambda: inputs.read_toml(path, "a preset"))


@pytest.mark.skipif(not PIPES, reason="this system has no named pipes")
def test_what_lies_behind_a_dead_link_is_to_be_read(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/x").touch()
    for name in ("dead", "loop"):
        (tmp_path / name).symlink_to({"dead": "nowhere"}.get(name, name))
    names = ("folder/x", "dead", "loop", "dead/x", "loop/x", "folder/y", "none/x", "a\0b")
    assert [name for name in names if inputs.there(tmp_path / name)] == [*names[:5]]


class Row(msgspec.Struct):
    n: int


@each("content", [b"", b"{", b"[]", b'{"n": "x"}', b'{"n": NaN}', b"\xff", b'{"x":' + b"[" * 100_000])
def test_a_damaged_file_of_our_own_is_a_sentence(content, tmp_path):
    (tmp_path / "row.json").write_bytes(b'{"n": 7}')
    assert inputs.read_struct(tmp_path / "row.json", Row, "a row") == Row(7)
    (tmp_path / "row.json").write_bytes(content)
    said = refused(lambda: inputs.read_struct(tmp_path / "row.json", Row, "a row"))
    assert "row.json: a row is damaged: " in said


def test_regular_never_waits_and_never_raises(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "x").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    found = {n: inputs.regular(tmp_path / n) for n in ("x", "link", "pipe", ".", "no", "a\0b")}
    assert found == {"x": True, "link": True, "pipe": False, ".": False, "no": False, "a\0b": False}


# -- the writer of every output --------------------------------------------------------------------


posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX links, pipes and devices")


def write(target: str | Path, sources: Sequence[Path] = (), content: bytes = b"new") -> None:
    with writing(target, "the table", sources) as draft:
        draft.write_bytes(content)


def sentence(target: str | Path, sources: Sequence[Path] = ()) -> str:
    with pytest.raises(OutputError) as caught:
        write(target, sources)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert "the table" in text
    return text


def half_written(target: Path, problem: BaseException) -> None:
    with writing(target, "the table") as draft:
        draft.write_bytes(b"half")
        raise problem


def test_a_new_file_and_an_old_one_are_written_whole(tmp_path):
    target = tmp_path / "a.csv"
    write(target)
    assert target.read_bytes() == b"new"
    write(target, content=b"newer")
    assert target.read_bytes() == b"newer"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_what_goes_wrong_leaves_the_old_file_and_no_draft(tmp_path):
    target = tmp_path / "a.csv"
    target.write_bytes(b"old")
    for problem in (OutputError("no"), KeyboardInterrupt(), ZeroDivisionError()):
        with pytest.raises(type(problem)):
            half_written(target, problem)
        assert target.read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_a_full_disk_is_a_sentence(tmp_path):
    with pytest.raises(OutputError, match="no space left on device"):
        half_written(tmp_path / "a", OSError(errno.ENOSPC, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


@posix
def test_the_source_is_never_written_over_by_whatever_name(tmp_path):
    source = tmp_path / "s.asrs"
    source.write_bytes(b"session")
    (tmp_path / "hard").hardlink_to(source)
    (tmp_path / "sub").mkdir()
    for name in (source, tmp_path / "hard", tmp_path / "sub" / ".." / "s.asrs", os.path.relpath(source)):
        assert "made from" in sentence(name, [source])
    assert source.read_bytes() == b"session"


@posix
def test_links_devices_and_folders_are_refused(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "link").symlink_to(victim)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert "symbolic link" in sentence(tmp_path / "link")
    assert "symbolic link" in sentence(tmp_path / "dangling")
    assert "folder" in sentence(tmp_path)
    for device in ("/dev/null", "/dev/full"):
        assert "device" in sentence(device)
        assert not Path(device).is_file()
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "nowhere").exists()


@posix
def test_a_name_for_the_draft_cannot_be_taken_beforehand(tmp_path):
    """A link that waits where the draft would be, by the name that it had when it could be foreseen."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / f".a.csv.{os.getpid()}").symlink_to(victim)
    write(tmp_path / "a.csv")
    assert victim.read_bytes() == b"precious"
    with writing(tmp_path / "a.csv", "it") as one, writing(tmp_path / "b.csv", "it") as two:
        assert one.name != two.name
        assert one.stat().st_mode & 0o777 == 0o600


@posix
def test_permissions_are_those_of_the_old_file_or_the_usual_ones(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"")
    old.chmod(0o640)
    write(old)
    write(new)
    mask = os.umask(0)
    os.umask(mask)
    assert old.stat().st_mode & 0o777 == 0o640
    assert new.stat().st_mode & 0o777 == 0o666 & ~mask


@posix
def test_a_pipe_is_written_straight_through_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe, content=b"x" * 200_000)
    reader.join(PATIENCE_S)
    assert read == [b"x" * 200_000]
    assert pipe.is_fifo()


@posix
def test_a_pipe_without_a_reader(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "READER_SECONDS", 0.1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "cannot be written there" in sentence(pipe)
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


@posix
def test_a_pipe_of_the_shells_is_a_pipe(tmp_path):
    if not Path("/dev/fd").exists():
        pytest.skip("no /dev/fd here")
    reading, writing_end = os.pipe()
    try:
        write(f"/dev/fd/{writing_end}")
        assert os.read(reading, 10) == b"new"
    finally:
        os.close(reading)
        os.close(writing_end)


def test_standard_output(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    write("-")
    assert out.getvalue() == b"new"
    assert list(tmp_path.iterdir()) == []


@each("name", ["", "no/such/folder/a", "a\0b", "x" * 5000, "no/"])
def test_names_that_cannot_be(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(sentence(name)) < 400
    assert list(tmp_path.iterdir()) == []
