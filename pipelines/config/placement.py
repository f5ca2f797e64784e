"""Device settings: where data is held and how it is transferred."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pipelines.config.conditions import DEVICES
from pipelines.config.options import setting


class Placement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where data is held and how it is transferred when scoring runs on a device."""

    weights: Annotated[
        Literal["resident", "each-block"],
        setting(
            "Parameters",
            "resident: uploaded once. each-block: uploaded for every block, as in a program that keeps none of them.",
            layer="Device",
            live=True,
            when={"device": DEVICES},
        ),
    ] = "resident"
    transfer: Annotated[
        Literal["block", "frame"],
        setting(
            "Transfer per",
            "Features are uploaded and scores downloaded once per block, or frame by frame.",
            layer="Device",
            live=True,
            when={"device": DEVICES},
        ),
    ] = "block"
    pinned: Annotated[
        bool,
        setting(
            "Pinned memory",
            "Page-locked host buffers, which the device can copy to and from directly.",
            layer="Device",
            live=True,
            when={"device": ("cuda", "xpu")},
        ),
    ] = True
    overlapped: Annotated[
        bool,
        setting(
            "Overlap copies",
            "Score the next block while the search processes this one.",
            layer="Device",
            live=True,
            when={"device": DEVICES},
        ),
    ] = False
    graphs: Annotated[
        bool,
        setting(
            "Kernel graphs",
            "Each stage of a block is recorded once and given to the device with one launch, not kernel by kernel.",
            layer="Device",
            live=True,
            when={"device": ("cuda",)},
        ),
    ] = False
    dtype: Annotated[
        Literal["fp32", "fp16", "bf16"],
        setting(
            "Data type",
            "Data type of the parameters and products on the device.",
            layer="Device",
            live=True,
            when={"device": DEVICES},
        ),
    ] = "fp32"
