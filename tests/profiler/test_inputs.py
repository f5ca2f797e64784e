"""Files that somebody names: regular ones of a size that their format can need, and trees that Python can hold."""

import contextlib
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
    sentence = "the file has 4 bytes; a thing of more than 3 is not read"
    assert sentence in refused(lambda: inputs.read_bytes(path, "a thing", 3))
    # Room is made for what a file has and not for its limit.
    tracemalloc.start()
    inputs.read_bytes(path, "a thing", 1 << 30)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


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
    for name, target in {"device": "/dev/zero", "loop": "loop", "dead": "nowhere", "link": "folder/x"}.items():
        (tmp_path / name).symlink_to(target)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/x").touch()
    listening = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(tmp_path), listening:  # a socket's path may have some hundred characters only
        listening.bind("socket")
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
        message = refused(lambda name=name: inputs.read_bytes(tmp_path / name, "a thing", 100))
        assert sentence in message
        assert len(message) < 500
    # `regular` never waits and never raises; `there` holds of what lies behind a dead link too.
    names = ("folder/x", "link", "dead", "loop", "dead/x", "loop/x", "pipe", ".", "folder/y", "none/x", "a\0b")
    assert [name for name in names if inputs.regular(tmp_path / name)] == ["folder/x", "link"]
    assert [name for name in names if not inputs.there(tmp_path / name)] == ["folder/y", "none/x", "a\0b"]


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="this system has no /proc")
def test_files_that_do_not_tell_their_size_or_fail_when_they_are_read(tmp_path):
    path = "/proc/self/status"
    assert inputs.read_bytes(path, "a thing", 1 << 20).startswith(b"Name:")
    assert "of more than 10 bytes" in refused(lambda: inputs.read_bytes(path, "a thing", 10))
    path = tmp_path / "x"
    path.symlink_to("/proc/self/mem")  # a regular file with nothing at its beginning
    assert refused(lambda: inputs.read_bytes(path, "a thing", 99)).startswith(f"{path}: a thing cannot be read here: ")


@each("encoding", ["utf-8-sig", "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_text_is_utf_8_or_what_a_byte_order_mark_tells(encoding, tmp_path):
    mark = "\ufeff" if encoding.endswith("e") else ""
    path = tmp_path / "text"
    path.write_bytes(f"{mark}one\r\n\u0926\u094b \U0001f600".encode(encoding))
    assert inputs.read_text(path, "a thing", 99) == "one\r\n\u0926\u094b \U0001f600"
    for content, sentence in (
        (b"one\ntwo \xff", "line 2 is not UTF-8"),
        ("\ufeffone\ntwo\nthr\ud800ee\nfour".encode("utf-16-le", "surrogatepass"), "line 3 is not UTF-16"),
    ):
        path.write_bytes(content)
        assert sentence in refused(lambda: inputs.read_text(path, "a thing", 99))


DEEP = inputs.TREE_DEPTH
NOT_JSON = ["", "{", "[1,]", "NaN,", "[" * 100_000, '{"a":' * 5000, "9" * 5000, "\ud800"]
NOT_TOML = ["a", "a = ", "a=1\na=2", "a = " + "[" * 5000, "a = " + "9" * 5000, "a.b" * 2000, "\0"]


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


def test_trees_are_bounded_in_depth_and_integers(tmp_path):
    nested = "[" * DEEP + "0" + "]" * DEEP
    assert inputs.json_tree(nested, "here") is not None
    for number in (2**63 - 1, -(2**63) + 1):
        assert inputs.json_tree(str(number), "here") == number
    path = tmp_path / "x.toml"
    path.write_text("[a]\nb = [1, 2]\n")
    assert inputs.read_toml(path, "a preset") == {"a": {"b": [1, 2]}}
    for text in (f"[{nested}]", str(2**63), '{"a": [{"b": ' + "9" * 400 + "}]}"):
        assert ("deep" if text[0] == "[" else "bits") in refused(lambda text=text: inputs.json_tree(text, "here"))
    for text, word in ((f"a = {2**63}\n", "64 bits"), (f"[{'.'.join('x' * (DEEP + 2))}]", "deep")):
        path.write_text(text)
        assert word in refused(lambda: inputs.read_toml(path, "a preset"))


class Row(msgspec.Struct):
    n: int


@each("content", [b"", b"{", b"[]", b'{"n": "x"}', b'{"n": NaN}', b"\xff", b'{"x":' + b"[" * 100_000])
def test_a_damaged_file_of_our_own_is_a_sentence(content, tmp_path):
    (tmp_path / "row.json").write_bytes(b'{"n": 7}')
    assert inputs.read_struct(tmp_path / "row.json", Row, "a row") == Row(7)
    (tmp_path / "row.json").write_bytes(content)
    said = refused(lambda: inputs.read_struct(tmp_path / "row.json", Row, "a row"))
    assert "row.json: a row is damaged: " in said


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
    mask = os.umask(0)
    os.umask(mask)
    assert sys.platform == "win32" or target.stat().st_mode & 0o777 == 0o666 & ~mask
    target.chmod(0o640)
    write(target, content=b"newer")
    assert target.read_bytes() == b"newer"
    assert sys.platform == "win32" or target.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_what_goes_wrong_leaves_the_old_file_and_no_draft(tmp_path):
    target = tmp_path / "a.csv"
    target.write_bytes(b"old")
    full = OSError(errno.ENOSPC, "No space left on device")
    for problem in (OutputError("no"), KeyboardInterrupt(), ZeroDivisionError(), full):
        with pytest.raises(OutputError if problem is full else type(problem)) as caught:
            half_written(target, problem)
        assert problem is not full or "no space left on device" in str(caught.value)
        assert target.read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


@posix
def test_the_source_links_devices_and_folders_are_never_written_over(tmp_path):
    source = tmp_path / "s.asrs"
    source.write_bytes(b"session")
    (tmp_path / "hard").hardlink_to(source)
    (tmp_path / "sub").mkdir()
    for name in (source, tmp_path / "hard", tmp_path / "sub" / ".." / "s.asrs", os.path.relpath(source)):
        assert "made from" in sentence(name, [source])
    (tmp_path / "link").symlink_to(source)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert "symbolic link" in sentence(tmp_path / "link")
    assert "symbolic link" in sentence(tmp_path / "dangling")
    assert "folder" in sentence(tmp_path)
    for device in ("/dev/null", "/dev/full"):
        assert "device" in sentence(device)
        assert not Path(device).is_file()
    assert source.read_bytes() == b"session"
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
def test_a_pipe_is_written_straight_through_and_stays_a_pipe(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe, content=b"x" * 200_000)
    reader.join(PATIENCE_S)
    assert read == [b"x" * 200_000]
    monkeypatch.setattr(outputs, "READER_SECONDS", 0.1)
    assert "cannot be written there" in sentence(pipe), "nobody reads"
    assert pipe.is_fifo()
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_standard_output_and_a_pipe_of_the_shells(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    write("-")
    assert out.getvalue() == b"new"
    assert list(tmp_path.iterdir()) == []
    if Path("/dev/fd").exists():
        reading, writing_end = os.pipe()
        with open(reading, "rb") as pipe, open(writing_end, "wb"):
            write(f"/dev/fd/{writing_end}")
            assert pipe.read1() == b"new"


@each("name", ["", "no/such/folder/a", "a\0b", "x" * 5000, "no/"])
def test_names_that_cannot_be(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(sentence(name)) < 400
    assert list(tmp_path.iterdir()) == []
