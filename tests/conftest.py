"""What all tests share: a cache of their own, and the real human speech where it lies beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run of CI: what random ones find belongs to the desk, not to a merge.
settings.register_profile("here", deadline=None)  # machines are busy at times
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("here")
if os.environ.get("CI"):
    settings.load_profile("ci")

# Before anything imports Qt: without a display it would abort the interpreter.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

CHECKOUT = Path(__file__).parents[1]
SHARED = CHECKOUT.parent / "shared"

# Graphs and peaks are kept between runs of the tests, apart from those of the person who runs them.
os.environ["ASRSCOPE_CACHE"] = str(CHECKOUT / "build" / "test-cache")
os.environ["ASRSCOPE_SESSIONS"] = str(CHECKOUT / "build" / "test-sessions")


@pytest.fixture(scope="session")
def shared_audio() -> Path:
    """The folder of real human speech; tests that need it are skipped where it is not."""
    folder = SHARED / "audio"
    if not (folder / "transcripts.tsv").exists():
        pytest.skip("no human speech beside this checkout")
    return folder


@pytest.fixture(scope="session")
def bundled_speech() -> Path:
    """The shipped synthetic voices."""
    import assets

    return assets.path("speech")
