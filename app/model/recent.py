"""What the window remembers between two starts, and where it writes sessions.

A JSON file of texts and lists of texts, in the user's own folder of configurations and in no other. Qt's `QSettings`
would run what a file of settings says (PySide restores objects by pickle), and looks in the system's folders as well.

Geometries and layouts are bytes of Qt, which follows whatever counts they hold. They are kept with a seal by a key
that lies in the user's data folder, so that only bytes that this program has written there are given back to Qt.
"""

import base64
import contextlib
import hmac
import os
import secrets
from collections.abc import Collection
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from PySide6.QtCore import QByteArray, QStandardPaths

from app.application import APPLICATION
from profiler.files.inputs import MIB, InputError, read_bytes, read_json, regular
from profiler.files.outputs import OutputError, writing

SCHEMA: Final = 2
LARGEST: Final = MIB
FILE: Final = "window.json"
KEY_BYTES: Final = 32
MAX_RECENT = 12
EXPORT_FOLDER = "export/folder"  # Key of the folder into which a picture or data were written last
STUDY = "study"  # Key of the study that was opened last
LAYOUTS = "layouts"  # Group of the keys of the layouts that the user saved
SESSION_SUFFIX = ".asrs"

Value = str | list[str]


class Memory:
    """Typed access to what is remembered; every value read back is checked. What cannot be written is forgotten."""

    def __init__(self, file: Path | None = None) -> None:
        place = QStandardPaths.StandardLocation.GenericConfigLocation
        self._file = file or Path(QStandardPaths.writableLocation(place), APPLICATION, FILE)
        self._values = self._read() or {}

    def _read(self) -> dict[str, Value] | None:
        """The values in the file, those of no sense left out; None where it is none of this schema."""
        try:
            tree = read_json(self._file, "what the window remembers", LARGEST)
        except InputError:
            return None
        values = tree.get("values") if isinstance(tree, dict) and tree.get("schema") == SCHEMA else None
        return {k: v for k, v in values.items() if _is_value(v)} if isinstance(values, dict) else None

    def remember(self, key: str, value: Value | None) -> None:
        """Change a value of the file, which another window may have changed meanwhile; None: take it out."""
        found = self._read()
        self._values = self._values if found is None else found
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        place = os.path.realpath(self._file)
        if os.path.lexists(place) and not regular(Path(place)):
            return
        with contextlib.suppress(OSError, OutputError):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with writing(place, "what the window remembers") as draft:
                import json

                draft.write_text(json.dumps({"schema": SCHEMA, "values": self._values}, indent=1), encoding="ascii")

    def texts(self, key: str) -> list[str]:
        value = self._values.get(key)
        return list(value) if isinstance(value, list) else []

    def text(self, key: str, default: str = "", known: Collection[str] | None = None) -> str:
        """Return a remembered text, if it is one of those `known` where these are named."""
        value = self._values.get(key, default)
        if not isinstance(value, str) or (known is not None and value not in known):
            return default
        return value

    def state(self, key: str) -> QByteArray | None:
        """Return a geometry or layout that was remembered here, or None."""
        seal, _, text = self.text(key).partition(" ")
        try:
            state = base64.b64decode(text, validate=True)
        except ValueError:
            return None
        genuine = bool(state) and hmac.compare_digest(_seal(key, state).encode(), seal.encode("utf-8", "replace"))
        return QByteArray(state) if genuine else None

    def remember_state(self, key: str, state: QByteArray) -> None:
        content = bytes(state.data())
        self.remember(key, f"{_seal(key, content)} {base64.b64encode(content).decode('ascii')}")

    def layouts(self) -> list[str]:
        keys = (key.removeprefix(f"{LAYOUTS}/") for key in self._values if key.startswith(f"{LAYOUTS}/"))
        return sorted(map(unquote, keys))

    def sessions(self) -> list[Path]:
        known = [Path(text) for text in self.texts("recent")[:MAX_RECENT]]
        return [path for path in known if regular(path)]

    def add_session(self, path: Path) -> None:
        """Put ``path`` at the top of the recent sessions."""
        text = str(path.resolve())
        others = [t for t in self.texts("recent") if t != text]
        self.remember("recent", [text, *others][:MAX_RECENT])

    def forget_session(self, path: Path) -> None:
        text = str(path.resolve())
        self.remember("recent", [t for t in self.texts("recent") if t != text])

    def rename_session(self, old: Path, new: Path) -> None:
        before, after = str(old.resolve()), str(new.resolve())
        self.remember("recent", [after if t == before else t for t in self.texts("recent")])

    def audio(self) -> list[str]:
        return [text for text in self.texts("audio") if os.path.exists(text)]

    def export_folder(self) -> Path:
        """Where pictures and data go: the folder used last, else that of the user's pictures, else home."""
        if os.path.isdir(last := self.text(EXPORT_FOLDER)):
            return Path(last)
        pictures = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.PicturesLocation)
        return Path(pictures) if pictures and os.path.isdir(pictures) else Path.home()


def layout_key(name: str) -> str:
    return f"{LAYOUTS}/{quote(name, safe='')}"


def _is_value(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(text, str) for text in value))


def _seal(key: str, state: bytes) -> str:
    """Proves that this program has remembered `state` under `key`."""
    return hmac.new(_own_key(), key.encode("utf-8", "replace") + b"\0" + state, "sha256").hexdigest()


def _own_key() -> bytes:
    """The key in the user's data folder, made if need be; one for this process where none can be kept."""
    folder = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.AppDataLocation))
    file = folder / "window.key"
    with contextlib.suppress(InputError):
        known = read_bytes(file, "the key of the window", KEY_BYTES)
        if len(known) == KEY_BYTES:
            return known
    made = secrets.token_bytes(KEY_BYTES)
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as kept:
            kept.write(made)
    return made
