"""The Qt application: created once, under the name used for its settings."""

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from PySide6.QtCore import QByteArray, QDataStream, QIODevice, QMessageLogContext, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from profiler.plain import one_line

ORGANISATION, APPLICATION = "asrscope", "asrscope"


def application() -> QApplication:
    """Return the application, created on first use with name, font and theme."""
    existing = QApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    restore_no_objects()
    made = QApplication(sys.argv[:1])
    made.setOrganizationName(ORGANISATION)
    made.setApplicationName(APPLICATION)
    made.setApplicationDisplayName("asrscope")
    return made


def restore_no_objects() -> None:
    """From now on Qt restores no Python object from what it reads itself: its settings, desktop themes, dragged data.

    PySide does that by `pickle.loads`, which runs what the bytes say. It looks the function up once: here, while there
    is one in its place that restores nothing.
    """
    data = QByteArray()
    QDataStream(data, QIODevice.OpenModeFlag.WriteOnly).writeQVariant(object())
    loads, pickle.loads = pickle.loads, lambda *_: None
    try:
        QDataStream(data).readQVariant()
    finally:
        pickle.loads = loads


SCREEN: Final = ("QT_SCALE_FACTOR", "QT_SCREEN_SCALE_FACTORS", "QT_FONT_DPI", "QT_USE_PHYSICAL_DPI")  # Qt on a screen


def need_no_display() -> None:
    """Before there is an application: a display that is not there, or a wrong name of one, would end the process."""
    if QApplication.instance() is None:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        for name in SCREEN:
            os.environ.pop(name, None)


NO_FONT: Final = (
    "No font on this machine has the letters of some words, which are drawn as boxes; install one that has them, "
    "such as those of the Noto family."
)

_OF_FONTS: Final = "OpenType support missing"
_OF_NO_USE: Final = "propagateSizeHints"  # What the offscreen platform says of every change of size
_MEANT: Final = (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg)  # Requested by environment variables

_passed_on: set[str] = set()  # Sentences of this process


@contextmanager
def in_sentences(tell: Callable[[str], None] | None = None) -> Iterator[None]:
    """While this lasts, pass on what Qt says; `tell` gets what concerns the user, by default it goes to stderr."""

    def forward(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        if _OF_NO_USE in text:
            return
        if _OF_FONTS in text:
            once(NO_FONT, tell or _complain)
        elif before is not None:
            before(kind, context, text)
        elif kind in _MEANT:
            sys.stderr.write(f"{text}\n")
        else:
            once(f"Qt says: {one_line(text)}", _complain)

    before = qInstallMessageHandler(forward)
    try:
        yield
    finally:
        qInstallMessageHandler(before)


def once(sentence: str, tell: Callable[[str], None]) -> None:
    if sentence not in _passed_on:
        _passed_on.add(sentence)
        tell(sentence)


def _complain(sentence: str) -> None:
    sys.stderr.write(f"asrscope: {sentence}\n")
