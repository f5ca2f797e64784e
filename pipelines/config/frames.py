"""Settings of the frame layer."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pipelines.config.conditions import MIXTURES, NOT_CTC
from pipelines.config.options import Toggle, setting


class Frames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frame layer: which frames are scored."""

    skip: Annotated[
        int,
        setting(
            "Frame skipping",
            "1 scores every frame; k scores every k-th frame, and the rule below gives the others their scores.",
            layer="Frame layer",
            live=True,
            main=True,
            words={1: "off", 2: "every 2nd", 3: "every 3rd", 4: "every 4th"},
            toggle=Toggle(
                "Frame skipping",
                "Score only every n-th frame",
                place=2,
                key="K",
                off=1,
                on=2,
                without="every frame scored",
            ),
            when=NOT_CTC,
            ge=1,
            le=4,
        ),
    ] = 1
    rule: Annotated[
        Literal["copy", "conditional", "multi-frame"],
        setting(
            "Skipped frames",
            "copy: skipped frames repeat the scores of the last scored frame. conditional: a frame is skipped only "
            "while the nearest codeword stays the same, at most k−1 in a row. multi-frame: a net with several output "
            "layers scores k frames at once (Vanhoucke 2013).",
            layer="Frame layer",
            live=True,
            when=NOT_CTC,
            choices_when={
                "conditional": {"model": MIXTURES},
                "multi-frame": {"model": ("dnn",), "dnn.senones": ("all",)},
            },
        ),
    ] = "copy"
    codewords: Annotated[
        int,
        setting(
            "Frame codewords",
            "Size of the codebook that decides whether the sound has changed. With more codewords, fewer frames are "
            "skipped.",
            layer="Frame layer",
            unit="codewords",
            live=True,
            ge=16,
            le=4096,
            when={"frames.rule": ("conditional",)},
        ),
    ] = 256
