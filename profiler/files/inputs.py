"""Reads files that somebody names: regular ones, of a size that their format can need.

Devices, pipes, links that lead nowhere and files of gigabytes are refused before a byte is read. JSON and TOML are
bounded in size, depth and integers. Every refusal is an `InputError`, one sentence.
"""

import codecs
import errno
import os
import stat
import tomllib
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Final, TypeVar

from profiler.errors import BadInput
from profiler.plain import one_line

KIB: Final = 1 << 10
MIB: Final = 1 << 20
TREE_BYTES: Final = 4 * MIB  # The largest JSON or TOML file of people's own making that is read
TREE_DEPTH: Final = 64  # Nothing that this program writes nests deeper than 8
INTEGER_BITS: Final = 63  # Larger integers fit no setting, no array and no column of a session

_NO_WAITING: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)

_HEAD_BYTES: Final = 64
_INSTEAD: Final = (
    (b"version https://git-lfs.github.com/", "a Git LFS pointer, not the file itself: run `git lfs pull`"),
    (b"<!doctype html", "an HTML page, not the file itself: the address that it came from shows a page"),
    (b"<html", "an HTML page, not the file itself: the address that it came from shows a page"),
)
"""What downloads leave in place of a file: how it begins, in small letters, and what it is."""

_MARKED: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks: the longer one first, which begins as the shorter one does."""


T = TypeVar("T")


class InputError(BadInput):
    """A file that cannot be read, or a tree of the wrong form."""


def open_input(path: str | os.PathLike[str], what: str, limit: int) -> BufferedReader:
    """Open the regular file `path` of at most `limit` bytes for reading.

    `what` names what it should be ("a dictionary"), for the sentence of the InputError otherwise. A Git LFS pointer
    and an HTML page are none of the files that this program reads.
    """
    shown = one_line(os.fspath(path))
    try:
        # Opened first and looked at then: what is opened is what was looked at.
        descriptor = os.open(path, os.O_RDONLY | _NO_WAITING)
    except ValueError:
        raise InputError(f"{shown}: no file has a name with a NUL character in it.") from None
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP) and os.path.islink(path):
            raise InputError(f"{shown} is a link that leads nowhere, so {what} is missing.") from None
        if error.errno == errno.ENOENT:
            raise InputError(f"{shown}: there is no such file; {what} is wanted here.") from None
        # A folder on Windows, no permission, a socket.
        raise _unreadable(shown, what, error) from error
    try:
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            raise InputError(f"{shown}: this is a folder; {what} is wanted here.")
        if not stat.S_ISREG(about.st_mode):
            raise InputError(f"{shown}: this is a pipe or a device; {what} is wanted here.")
        if about.st_size > limit:
            raise InputError(
                f"{shown}: the file has {about.st_size:,} bytes; {what} of more than {limit:,} is not read."
            )
        try:
            head = os.read(descriptor, _HEAD_BYTES).lstrip(codecs.BOM_UTF8 + b" \t\r\n").lower()
        except OSError as error:  # a faulty disk, a file of /proc that has nothing at its beginning
            raise _unreadable(shown, what, error) from error
        os.lseek(descriptor, 0, os.SEEK_SET)
        for beginning, instead in _INSTEAD:
            if head.startswith(beginning):
                raise InputError(f"{shown}: this is {instead}.")
        return os.fdopen(descriptor, "rb")
    except BaseException:  # whatever ends this, nobody else knows the descriptor
        os.close(descriptor)
        raise


def _unreadable(shown: str, what: str, error: OSError) -> InputError:
    return InputError(f"{shown}: {what} cannot be read here: {(error.strerror or str(error)).lower()}.")


def read_bytes(path: str | os.PathLike[str], what: str, limit: int) -> bytes:
    """Return the content of the regular file `path`; InputError as from `open_input`."""
    with open_input(path, what, limit) as file:
        try:
            # `read` makes room for all that it is asked for, so that is what the file says it has. One that
            # grows, or does not tell its size (/proc), goes on in pieces.
            content = file.read(min(os.fstat(file.fileno()).st_size, limit) + 1)
            while len(content) <= limit and (more := file.read(min(64 * KIB, limit + 1 - len(content)))):
                content += more
        except OSError as error:
            raise _unreadable(one_line(os.fspath(path)), what, error) from error
    if len(content) > limit:
        raise InputError(f"{one_line(os.fspath(path))}: {what} of more than {limit:,} bytes is not read.")
    return content


def read_text(path: str | os.PathLike[str], what: str, limit: int) -> str:
    """Return the text of the regular file `path`: UTF-8, or by its byte order mark (left out) UTF-16 or UTF-32."""
    content = read_bytes(path, what, limit)
    marked = next((encoding for mark, encoding in _MARKED if content.startswith(mark)), "")
    encoding = marked or "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].decode(encoding, "ignore").count("\n") + 1
        wanted = f"{marked.upper()}, which its byte order mark announces" if marked else "UTF-8"
        where = f"{one_line(os.fspath(path))}: line {line}"
        raise InputError(f"{where} is not {wanted}; save the file as UTF-8.") from error


def lines_of(text: str) -> list[str]:
    """Return the lines of `text` by line feeds, without carriage returns; `str.splitlines` has eight more ends."""
    lines = text.split("\n")
    if not lines[-1]:
        del lines[-1]
    return [line.removesuffix("\r") for line in lines]


def read_json(path: str | os.PathLike[str], what: str, limit: int = TREE_BYTES) -> object:
    return json_tree(read_text(path, what, limit), one_line(os.fspath(path)))


def read_toml(path: str | os.PathLike[str], what: str, limit: int = TREE_BYTES) -> dict[str, object]:
    return toml_tree(read_text(path, what, limit), one_line(os.fspath(path)))


def json_tree(text: str | bytes, where: str) -> object:
    """Return the tree that `text` writes in JSON; `where` begins the sentence of an InputError."""
    import json

    return _tree(lambda: json.loads(text), "JSON", where)


def toml_tree(text: str, where: str) -> dict[str, object]:
    """Return the tables that `text` writes in TOML; `where` begins the sentence of an InputError."""
    return _tree(lambda: tomllib.loads(text), "TOML", where)


def _tree(parsed: Callable[[], T], language: str, where: str) -> T:
    try:
        tree = parsed()
    except RecursionError:
        raise InputError(f"{where}: {language} nested more than {TREE_DEPTH} deep is not read.") from None
    except ValueError as error:
        raise InputError(f"{where}: this is not {language}: {one_line(str(error))}.") from error
    check_tree(tree, where)
    return tree


def read_struct(path: str | os.PathLike[str], kind: type[T], what: str, limit: int = TREE_BYTES) -> T:
    """Return the content of a JSON file that this program has written, as the msgspec type `kind`."""
    import msgspec  # the window reads files before it needs it

    content = read_bytes(path, what, limit)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"{one_line(os.fspath(path))}: {what} is damaged: {one_line(str(error))}.") from None


def check_tree(tree: object, where: str) -> None:
    """InputError unless lists and tables nest at most TREE_DEPTH deep and every integer fits 64 bits."""
    level, depth = [tree], 0
    while level:
        if depth > TREE_DEPTH:
            raise InputError(f"{where}: a tree nested more than {TREE_DEPTH} deep is not read.")
        below: list[object] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
            elif isinstance(node, int) and node.bit_length() > INTEGER_BITS:
                raise InputError(
                    f"{where}: an integer of {node.bit_length()} bits is not read; at most {INTEGER_BITS} fit."
                )
        level, depth = below, depth + 1


def there(path: str | os.PathLike[str]) -> bool:
    """Whether to read an optional file; one behind a link that leads nowhere counts, since reading it then says so."""
    folder = os.path.dirname(path)
    return os.path.lexists(path) or (os.path.islink(folder) and not os.path.exists(folder))


def regular(path: Path) -> bool:
    """Whether `path` is a regular file, a link to one counted in; never waits and never raises."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False
