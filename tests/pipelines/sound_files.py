"""Sound files and tables for tests, and what an error says of one."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipelines.audio.loading import AudioError
from pipelines.frontend.parameters import SAMPLE_RATE

RATE = SAMPLE_RATE


def voice(seconds: float = 3.0, rate: int = RATE) -> np.ndarray:
    """Something like speech: tones that swell and fade, with a little noise."""
    t = np.arange(int(seconds * rate)) / rate
    tones = sum(np.sin(2 * np.pi * f * t) for f in (180.0, 560.0, 1_450.0, 2_700.0))
    noise = np.random.default_rng(5).standard_normal(len(t))
    return 0.1 * tones * (1.1 + np.sin(2 * np.pi * 3.0 * t)) + 0.01 * noise


def refused(use: Callable[..., object], *arguments: object, says: Iterable[str], **more: object) -> str:
    """`use` ends with an error in one sentence that holds `says`: that sentence."""
    with pytest.raises(AudioError) as error:
        use(*arguments, **more)
    said = str(error.value)
    assert "\n" not in said
    assert said.endswith(".")
    for part in says:
        assert part in said
    return said


def make(*files: Path) -> list[Path]:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(file, np.zeros(100), RATE)
    return list(files)


def written(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    file = folder / name
    file.write_text(text, encoding=encoding, newline="")
    return file
