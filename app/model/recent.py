"""What the window remembers between two starts, and where it writes sessions.

All of it lies in one ``QSettings`` with a schema number; a schema from elsewhere is dropped, never
guessed at. Sessions go to the user's data folder unless ``ASRSCOPE_SESSIONS`` names another one.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from urllib.parse import quote, unquote

from PySide6.QtCore import QByteArray, QSettings, QStandardPaths

from app.application import APPLICATION, ORGANISATION

SCHEMA = 1
MAX_RECENT = 12

EXPORT_FOLDER = "export/folder"  # Key of the folder into which a picture or data were written last
STUDY = "study"  # Key of the study that was opened last
LAYOUTS = "layouts"  # Group of the keys of the layouts that the user saved

SESSION_SUFFIX = ".asrs"


class Memory:
    """Typed access to the settings; every value read back is checked."""

    def __init__(self, file: Path | None = None) -> None:
        """Take the user's own settings, or those in `file` (INI)."""
        if file is not None:
            self._settings = QSettings(str(file), QSettings.Format.IniFormat)
        else:
            kind, scope = QSettings.defaultFormat(), QSettings.Scope.UserScope
            self._settings = QSettings(kind, scope, ORGANISATION, APPLICATION)
        if self._integer("schema", SCHEMA) != SCHEMA:
            self._settings.clear()
        self._settings.setValue("schema", SCHEMA)

    def _integer(self, key: str, default: int) -> int:
        try:
            return int(str(self._settings.value(key, default)))
        except ValueError:
            return default

    def texts(self, key: str) -> list[str]:
        """Return a remembered list of texts."""
        value = self._settings.value(key)
        if isinstance(value, str):  # an ini file gives a list of one back as a string
            return [value] if value else []
        return [str(item) for item in value] if isinstance(value, (list, tuple)) else []

    def text(self, key: str, default: str = "", known: Collection[str] | None = None) -> str:
        """Return a remembered text, if it is one of those `known` where these are named."""
        value = self._settings.value(key, default)
        if not isinstance(value, str) or (known is not None and value not in known):
            return default
        return value

    def remember(self, key: str, value: str | list[str] | QByteArray) -> None:
        """Remember a value under ``key``."""
        self._settings.setValue(key, value)

    def state(self, key: str) -> QByteArray | None:
        """Return a remembered geometry or layout, or None."""
        value = self._settings.value(key)
        return value if isinstance(value, QByteArray) and not value.isEmpty() else None

    def forget(self, key: str) -> None:
        """Forget what is under ``key``."""
        self._settings.remove(key)

    def layouts(self) -> list[str]:
        """Names of the layouts that the user saved."""
        self._settings.beginGroup(LAYOUTS)
        keys = self._settings.childKeys()
        self._settings.endGroup()
        return sorted(unquote(key) for key in keys)

    def layout(self, name: str) -> QByteArray | None:
        """Return a layout that the user saved, or None."""
        return self.state(_layout_key(name))

    def remember_layout(self, name: str, state: QByteArray) -> None:
        """Keep a layout under a name."""
        self.remember(_layout_key(name), state)

    def forget_layout(self, name: str) -> None:
        """Delete a layout that the user saved."""
        self.forget(_layout_key(name))

    def sessions(self) -> list[Path]:
        """Recent sessions that still exist, the newest first."""
        from profiler.files.inputs import regular

        known = [Path(text) for text in self.texts("recent")[:MAX_RECENT]]
        return [path for path in known if regular(path)]

    @property
    def has_sessions(self) -> bool:
        """Whether any is remembered; it may be gone."""
        return bool(self.texts("recent"))

    def add_session(self, path: Path) -> None:
        """Put ``path`` at the top of the recent sessions."""
        text = str(path.resolve())
        others = [t for t in self.texts("recent") if t != text]
        self._settings.setValue("recent", [text, *others][:MAX_RECENT])

    def forget_session(self, path: Path) -> None:
        """Take ``path`` off the list of recent sessions."""
        text = str(path.resolve())
        self._settings.setValue("recent", [t for t in self.texts("recent") if t != text])

    def rename_session(self, old: Path, new: Path) -> None:
        """Have a session in the list under its new name, at the same place."""
        before, after = str(old.resolve()), str(new.resolve())
        self._settings.setValue("recent", [after if t == before else t for t in self.texts("recent")])

    def forget_sessions(self) -> None:
        """Empty the list of recent sessions (the files stay)."""
        self._settings.remove("recent")

    def audio(self) -> list[str]:
        """Audio files or folders of the last run that still exist."""
        return [text for text in self.texts("audio") if os.path.exists(text)]

    def export_folder(self) -> Path:
        """Where pictures and data go: the folder used last, else that of the user's pictures, else home."""
        last = self.text(EXPORT_FOLDER)
        if last and os.path.isdir(last):
            return Path(last)
        place = QStandardPaths.StandardLocation.PicturesLocation
        pictures = QStandardPaths.writableLocation(place)
        return Path(pictures) if pictures and os.path.isdir(pictures) else Path.home()

    def sync(self) -> None:
        """Write to disk now."""
        self._settings.sync()


def _layout_key(name: str) -> str:
    """A name may have slashes, which would be groups of keys."""
    return f"{LAYOUTS}/{quote(name, safe='')}"
