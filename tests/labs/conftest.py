"""Labs of training on planted data, with their workers as threads: seconds, not minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.labs import _training
from pipelines.training.parallel import launch
from pipelines.training.parallel import lessons as labelled
from tests.pipelines import workers_in_threads


@pytest.fixture
def small_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_training, "data", lambda desk: Path())
    monkeypatch.setattr(labelled, "read", lambda *_: workers_in_threads.lessons(context=7))
    monkeypatch.setattr(launch, "pieces", workers_in_threads.pieces)
