"""Parameters that several labs have, each with one text: `seconds: Seconds = 15.0` in a lab's own struct."""

from __future__ import annotations

from typing import Annotated

from pipelines.config.options import setting

Seconds = Annotated[float, setting("Time", "What the measurement may take.", unit="s", ge=0.0, le=600.0)]
Vocabulary = Annotated[int, setting("Vocabulary", "Words that the search knows.", unit="words", ge=10, le=200000)]
NetName = Annotated[str, setting("Net", "The name of a net that ships with the program.")]
Gaussians = Annotated[int, setting("Gaussians", "Gaussians per senone and stream.", ge=8, le=128)]
Words = Annotated[float, setting("Speech", "Speech that is decoded for words.", unit="s", ge=0.1, le=3600.0)]
Compared = Annotated[float, setting("Speech", "Speech on which scores are compared.", unit="s", ge=0.1, le=600.0)]
Singly = Annotated[int, setting("Frames", "Frames that a turn scores, one at a time.", ge=1, le=1000)]
InBlocks = Annotated[int, setting("Frames", "Frames that a turn scores, in blocks of 16.", ge=16, le=1000)]
