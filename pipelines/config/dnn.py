"""Settings of scoring by a neural net."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pipelines.config.options import Toggle, setting

NET = {"model": ("dnn",)}


class Dnn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scoring by a feed-forward neural net."""

    net: Annotated[
        str,
        setting(
            "Net",
            "The name of a net that came with the program, or the path of a .safetensors or .onnx file with its card "
            "(.json) beside it.",
            layer="Neural net",
            live=True,
            when=NET,
            names_in="nets",
            suffixes=(".safetensors", ".onnx"),
        ),
    ] = "base"
    shrink: Annotated[
        Literal["none", "low-rank", "sparse", "blocks"],
        setting(
            "Made smaller",
            "What is done to the weights when they are loaded, without training after it: low-rank factors each layer "
            "(SVD), sparse cuts the smallest weights, blocks cuts the smallest blocks of 16 outputs by one input.",
            layer="Neural net",
            live=True,
            when=NET,
        ),
    ] = "none"
    share: Annotated[
        float,
        setting(
            "Weights left",
            "Share of the weights that making the net smaller leaves.",
            layer="Neural net",
            live=True,
            ge=0.02,
            le=1.0,
            when={**NET, "dnn.shrink": ("low-rank", "sparse", "blocks")},
        ),
    ] = 0.3
    senones: Annotated[
        Literal["all", "asked", "asked-ahead"],
        setting(
            "Outputs computed",
            "all of the last layer for a whole block; asked: in each frame only the senones that the search asks for "
            "(lazy evaluation, Vanhoucke 2011); asked-ahead: those also for up to three frames that follow in the "
            "block, which mostly ask for them too.",
            layer="Neural net",
            live=True,
            when=NET,
            toggle=Toggle(
                "Lazy evaluation",
                "Compute only those outputs of the net that the search asks for",
                place=1,
                key="E",
                off="all",
                on="asked",
                without="all outputs",
                says={
                    "asked": "only what the search asks for",
                    "asked-ahead": "asked for, some frames ahead",
                },
            ),
        ),
    ] = "all"
    dtype: Annotated[
        Literal["fp32", "bf16", "int8"],
        setting(
            "Arithmetic",
            "bf16: weights and activations in 16 bits; quick where the processor has such instructions (AVX512-BF16 "
            "or AMX: `asrscope doctor` shows the rate), slow elsewhere. int8: as 8-bit integers, with a scale for each "
            "output and each frame (Vanhoucke 2011).",
            layer="Neural net",
            live=True,
            when=NET,
        ),
    ] = "fp32"
    product: Annotated[
        Literal["simd", "blas", "scalar", "csr", "blocks", "compiled"],
        setting(
            "Products by",
            "simd: our own loops over vectors, with weights laid out for them when loaded. blas: the library's matrix "
            "product. scalar: a plain loop, one multiplication at a time. csr, blocks: only the weights, or blocks of "
            "weights, that are not zero. compiled: the whole net through torch.compile, which takes some seconds and "
            "needs a C++ compiler.",
            layer="Neural net",
            live=True,
            when={**NET, "dnn.dtype": ("fp32",)},
            choices_when={"compiled": {"dnn.senones": ("all",), "frames.rule": ("copy",)}},
        ),
    ] = "simd"
