"""Conditions under which a setting acts, where several settings share one."""

DEVICES = ("torch-cpu", "cuda", "mps", "xpu")
"""Devices that torch computes on, if the machine has them; torch-cpu is its code for the processor."""
MIXTURES = ("ptm", "continuous", "single-stream")  # the acoustic models that score by Gaussian mixtures
CTC = {"model": ("ctc",)}  # a net whose outputs are units and a blank
NOT_CTC = {"model": (*MIXTURES, "dnn")}
ALL_SENONES = {"gmm.senones": ("all",)}
"""For strategies that share work among a group of senones: computing only some of them saves nothing."""
UNTIED = {"model": ("continuous", "single-stream")}  # models in which each senone has its own Gaussians
LISTED = {"gmm.selection.enabled": (True,), "gmm.selection.method": ("vq", "vq-tree")} | UNTIED
"""Shortlists of Gaussians that can be computed in more than one way."""
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
"""What a device can score: all senones, with its own library and in the data type of `placement.dtype`."""
_ONE_PRODUCT = "a device computes all Gaussians of a block in one product, and has no kernel for"
NOT_DENSE = {
    "gmm.selection.enabled": f"{_ONE_PRODUCT} a choice among them frame by frame",
    "gmm.component": f"{_ONE_PRODUCT} parts of them",
    "gmm.senones": "a device scores blocks ahead of the search, and does not know which senones it will ask for",
    "dnn.senones": "a device scores blocks ahead of the search, and does not know which senones it will ask for",
    "dnn.dtype": "torch multiplies integers on few devices only; placement.dtype chooses 16 bits",
    "dnn.product": "its products are those of torch",
    "frames.rule": "a device repeats the scores of frames left out; other rules read them here, one by one",
}
"""Why a device scores nothing else, by the setting that asks for it."""
IN_ONE_GO = {"model": (*MIXTURES, "dnn"), "search.lattice": (False,), "gmm.senones": ("all",), "dnn.senones": ("all",)}
"""What a device can search: whole blocks of scores, one for each frame, for the best path only."""
