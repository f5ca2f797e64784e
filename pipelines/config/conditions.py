"""Beside which other settings a setting acts, where several of them share the condition."""

DEVICES = ("torch-cpu", "cuda", "mps", "xpu")
"""What torch computes on, as far as a machine has it; torch-cpu is its code for the processor."""

MIXTURES = ("ptm", "continuous", "single-stream")
"""The acoustic models that score by Gaussian mixtures."""

ALL_SENONES = {"gmm.senones": ("all",)}
"""Strategies that share their work among the senones of a group, and cannot do some of them for less."""

UNTIED = {"model": ("continuous", "single-stream")}
"""Models whose senones own their Gaussians."""

LISTED = {
    "gmm.selection.enabled": (True,),
    "gmm.selection.method": ("vq", "vq-tree"),
} | UNTIED
"""Shortlists of Gaussians that can be computed in more ways than one."""

WHOLE = {"gmm.selection.enabled": (False,)} | ALL_SENONES

DENSE = (
    {
        "model": MIXTURES,
        "frames.rule": ("copy",),
        "gmm.senones": ("all",),
        "gmm.selection.enabled": (False,),
        "gmm.component": ("full",),
    },
    {
        "model": ("dnn",),
        "frames.rule": ("copy",),
        "dnn.senones": ("all",),
        "dnn.dtype": ("fp32",),
        "dnn.product": ("simd", "blas"),
    },
)
"""What a device scores: everything, by its own library and in the number type of `placement.dtype`."""

IN_ONE_GO = {"search.lattice": (False,), "gmm.senones": ("all",), "dnn.senones": ("all",)}
"""What a device searches: whole blocks of scores, for the best path alone."""
