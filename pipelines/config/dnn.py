"""Settings of scoring by a neural net, also one with a CTC output."""

from typing import Annotated, ClassVar, Literal

import msgspec

from pipelines.config.options import Toggle, Traits, setting

NET = {"model": ("dnn",)}
DNN_NET = setting(
    "Net",
    "The name of a net that ships with the program, or the path of a .safetensors or .onnx file whose card "
    "(.json, see docs/nets.md) is in the same folder.",
    main=True,
    names_in="nets",
    suffixes=(".safetensors", ".onnx"),
)
SHRINK = setting(
    "Compression",
    "How the weights are compressed when the net is loaded, without retraining. low-rank factors each layer "
    "(SVD); sparse prunes the smallest weights; blocks prunes the smallest blocks of 16 outputs by one input.",
)
SHARE = setting(
    "Weights kept",
    "Share of the weights that remains after compression.",
    ge=0.02,
    le=1.0,
    when={**NET, "dnn.shrink": ("low-rank", "sparse", "blocks")},
)
SENONES = setting(
    "Outputs computed",
    "all: the whole last layer for the whole block. active: in each frame only the active senones, those that "
    "the search needs (lazy evaluation, Vanhoucke 2011). active-ahead: the same senones also for up to three "
    "following frames of the block, which mostly need them too.",
    main=True,
    toggle=Toggle(
        "Lazy evaluation",
        "Compute only those outputs of the net that the search needs",
        place=1,
        key="E",
        off="all",
        on="active",
        without="all outputs",
        says={"active": "only active senones", "active-ahead": "active senones, some frames ahead"},
    ),
)
CONTEXT = setting(
    "Context of a block",
    "Of a net of Kaldi (nnet3). looped: each layer keeps what the next block needs of it. again: each block "
    "computes its whole context again, as in decoding by chunks, and its i-vector is its own.",
)
PRODUCT = setting(
    "Kernel",
    "simd: vectorised loops of our own; the weights are repacked for them on loading. blas: the matrix product "
    "of the BLAS library. scalar: a plain loop, one multiplication at a time. csr, blocks: only the non-zero "
    "weights or blocks of weights.",
    when={**NET, "dnn.dtype": ("fp32",)},
)


class Dnn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scoring by a feed-forward neural net."""

    TRAITS: ClassVar = Traits(layer="Neural net", live=True, when=NET)

    net: Annotated[str, DNN_NET] = "base"
    shrink: Annotated[Literal["none", "low-rank", "sparse", "blocks"], SHRINK] = "none"
    share: Annotated[float, SHARE] = 0.3
    senones: Annotated[Literal["all", "active", "active-ahead"], SENONES] = "all"
    context: Annotated[Literal["looped", "again"], CONTEXT] = "looped"
    dtype: Annotated[
        Literal["fp32", "int8"],
        setting("Arithmetic", "int8: 8-bit integers, with a scale for each output and each frame (Vanhoucke 2011)."),
    ] = "fp32"
    product: Annotated[Literal["simd", "blas", "scalar", "csr", "blocks"], PRODUCT] = "simd"


DTYPE = setting(
    "Arithmetic",
    "stored: the numbers of the file; those of 16 bits are computed in 32 where the processor has no others. "
    "int8: matrix products in 8-bit integers, made when the net is loaded, with a scale for the activations of "
    "each call (onnxruntime's quantize_dynamic).",
    when={"model": ("ctc",)},
)


class Ctc(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scoring by a net with a CTC output, which onnxruntime computes."""

    TRAITS: ClassVar = Traits(layer="Neural net")

    dtype: Annotated[Literal["stored", "int8"], DTYPE] = "stored"
