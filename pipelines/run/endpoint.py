"""When an utterance of a stream ends: the five rules of Kaldi's online2/online-endpoint.h."""

from __future__ import annotations

from pipelines.config.audio import Stream
from pipelines.search.viterbi import Viterbi
from profiler.clock import FRAME_S


def endpoint(settings: Stream, search: Viterbi, frames: int) -> int:
    """The first rule (1 … 5) that finds an endpoint after `frames` frames of a segment; 0: none does.

    Of the path that `search.partial` returned last.
    """
    length_s, silence_s = frames * FRAME_S, search.silence * FRAME_S
    said = search.silence < frames
    cost = search.relative_cost if said and silence_s >= settings.rule2_silence_s else float("inf")
    rules = (
        silence_s >= settings.rule1_silence_s,
        said and silence_s >= settings.rule2_silence_s and cost <= settings.rule2_cost,
        said and silence_s >= settings.rule3_silence_s and cost <= settings.rule3_cost,
        said and silence_s >= settings.rule4_silence_s,
        length_s >= settings.rule5_length_s,
    )
    return next((number for number, holds in enumerate(rules, 1) if holds), 0)
