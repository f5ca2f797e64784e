"""The Qt application: created once, under the name used for its settings."""

from __future__ import annotations

import os
import sys
from typing import Final

from PySide6.QtWidgets import QApplication

ORGANISATION, APPLICATION = "asrscope", "asrscope"


def application() -> QApplication:
    """Return the application, created on first use with name, font and theme."""
    existing = QApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    made = QApplication(sys.argv[:1])
    made.setOrganizationName(ORGANISATION)
    made.setApplicationName(APPLICATION)
    made.setApplicationDisplayName("asrscope")
    return made


SCREEN: Final = ("QT_SCALE_FACTOR", "QT_SCREEN_SCALE_FACTORS", "QT_FONT_DPI", "QT_USE_PHYSICAL_DPI")
"""What adapts Qt to a screen: a picture has its own size."""


def need_no_display() -> None:
    """Before there is an application: a display that is not there, or a wrong name of one, would end the process."""
    if QApplication.instance() is None:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        for name in SCREEN:
            os.environ.pop(name, None)
