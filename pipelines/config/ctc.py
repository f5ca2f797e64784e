"""Settings of scoring by a net with a CTC output."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pipelines.config.options import setting


class Ctc(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scoring by a net with a CTC output, which onnxruntime computes."""

    dtype: Annotated[
        Literal["stored", "int8"],
        setting(
            "Arithmetic",
            "stored: the numbers of the file; those of 16 bits are computed in 32 where the processor has no others. "
            "int8: matrix products in 8-bit integers, made when the net is loaded, with a scale for the activations of "
            "each call (onnxruntime's quantize_dynamic).",
            layer="Neural net",
            when={"model": ("ctc",)},
        ),
    ] = "stored"
