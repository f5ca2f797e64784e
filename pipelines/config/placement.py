"""Settings of a device: where data lies and how it moves."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pipelines.config.conditions import DEVICES
from pipelines.config.options import setting


class Placement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where data lies and how it moves when scoring runs on a device."""

    weights: Annotated[
        Literal["resident", "each-block"],
        setting(
            "Parameters",
            "resident: uploaded once. each-block: uploaded for every block, as by a program that forgets to keep them.",
            layer="Device",
            live=True,
            when={"device": DEVICES},
        ),
    ] = "resident"
    transfer: Annotated[
        Literal["block", "frame"],
        setting(
            "Moved per",
            "Features go up and scores come back once a block, or frame by frame.",
            layer="Device",
            live=True,
            when={"device": DEVICES},
        ),
    ] = "block"
    pinned: Annotated[
        bool,
        setting(
            "Pinned memory",
            "Host buffers that the device can copy from and to directly.",
            layer="Device",
            live=True,
            when={"device": ("cuda", "xpu")},
        ),
    ] = True
    overlapped: Annotated[
        bool,
        setting(
            "Overlap copies",
            "Score the next block while the search works on this one.",
            layer="Device",
            live=True,
            when={"device": DEVICES},
        ),
    ] = False
    dtype: Annotated[
        Literal["fp32", "fp16", "bf16"],
        setting(
            "Number type",
            "Of the parameters and products on the device.",
            layer="Device",
            live=True,
            when={"device": DEVICES},
        ),
    ] = "fp32"
