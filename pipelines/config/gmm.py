"""Settings of scoring by Gaussian mixtures, by the layers of Chan, Ravishankar & Rudnicky (2004)."""

from typing import Annotated, ClassVar, Literal

import msgspec

from pipelines.config.conditions import ALL_SENONES, LISTED, MIXTURES, UNTIED, WHOLE
from pipelines.config.options import Toggle, Traits, setting

ENABLED = setting(
    "Gaussian selection",
    "Evaluate only the densities that the method below selects.",
    main=True,
    when={"model": MIXTURES},
    toggle=Toggle(
        "Gaussian selection",
        "Evaluate only some of the Gaussians",
        place=1,
        key="G",
        off=False,
        on=True,
        without="all Gaussians",
    ),
)
METHOD = setting(
    "Method",
    "top-n: sums the n best densities. last-top-n: computes the best densities of the last frame first and abandons "
    "those that cannot join them (slower here; see docs/strategies.md). vq: computes the shortlist of the nearest "
    "codeword; vq-tree finds that codeword in a binary tree. vq-table: looks up scores by codeword. clusters: "
    "computes cluster Gaussians and expands the best (slower here on the tied model; see docs/strategies.md).",
    main=True,
    switched_by="gmm.selection.enabled",
    choices_when=dict.fromkeys(("top-n", "last-top-n", "vq-table", "clusters"), ALL_SENONES)
    | dict.fromkeys(("vq", "vq-tree"), (ALL_SENONES, UNTIED)),
)
TOP_N = setting(
    "Densities kept",
    "How many densities top-n keeps (pocketsphinx: 4). From about 32, selection costs more than it saves.",
    unit="per codebook and stream",
    switched_by="gmm.selection.enabled",
    ge=1,
    le=64,
    when={"gmm.selection.method": ("top-n", "last-top-n")},
)
CODEWORDS = setting(
    "Codewords",
    "Size of the codebook that quantises frames. A larger one fits more closely and takes longer to search.",
    unit="codewords",
    ge=16,
    le=4096,
    when={"gmm.selection.method": ("vq", "vq-tree", "vq-table", "clusters")},
)
THRESHOLD = setting(
    "Shortlist radius",
    "A Gaussian is on a codeword's shortlist if its mean is within this normalised squared distance "
    "(Bocchieri 1993). Higher values keep more. The likeliest Gaussian is always on the list.",
    ge=0.1,
    le=50.0,
    when={"gmm.selection.method": ("vq", "vq-tree")},
)
EXPAND = setting(
    "Clusters expanded",
    "How many of the best clusters have their own Gaussians evaluated. The others use their cluster's score.",
    unit="clusters",
    ge=1,
    le=4096,
    when={"gmm.selection.method": ("clusters",)},
)
PREPARE = setting(
    "Prepare in advance",
    "Make what the method needs before decoding begins, so that selection acts at once when it is switched "
    "on; otherwise it is made then, while decoding goes on.",
    when={"model": MIXTURES},
    live=False,
)


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Gaussian layer: which densities are evaluated."""

    TRAITS: ClassVar = Traits(layer="Gaussian layer", live=True)

    enabled: Annotated[bool, ENABLED] = False
    method: Annotated[Literal["none", "top-n", "last-top-n", "vq", "vq-tree", "vq-table", "clusters"], METHOD] = "top-n"
    top_n: Annotated[int, TOP_N] = 4
    codewords: Annotated[int, CODEWORDS] = 512
    threshold: Annotated[float, THRESHOLD] = (
        0.8  # 30 % of the Gaussians of the continuous model are computed; on development 1.2 points more word errors
    )
    expand: Annotated[int, EXPAND] = 64
    prepare: Annotated[bool, PREPARE] = False


COMPONENTS = setting(
    "Mixture components",
    "Gaussians per senone and stream; 42 is a usual size in the literature.",
    layer="Scoring",
    unit="per senone",
    ge=8,
    le=128,
    when=UNTIED,
)
SENONES = setting(
    "Senones scored",
    "all: every senone. active: only those that the search needs in this frame. ci: those whose "
    "context-independent (CI) parent scores well; the others get the parent's score (Lee 2001, Chan 2004). "
    "active-ci: both, as in Sphinx-3.",
    layer="GMM layer",
    live=True,
    main=True,
    when={"model": MIXTURES},
)
CI_BEAM = setting(
    "CI beam",
    "A senone is computed if its context-independent parent scores within this beam of the best parent.",
    layer="GMM layer",
    unit="nat",
    live=True,
    ge=0.0,
    le=200.0,
    when={"gmm.senones": ("ci", "active-ci")},
)
CI_CAP = setting(
    "Max senones",
    "The CI beam is tightened until at most this many context-dependent senones are computed per frame "
    "(maxcdsenpf in Sphinx-3); 0 means no limit.",
    layer="GMM layer",
    unit="senones",
    live=True,
    words={0: "no limit"},
    ge=0,
    le=100000,
    when={"gmm.senones": ("ci", "active-ci")},
)
COMPONENT = setting(
    "Component",
    "full: computes every Gaussian and sums exactly. partial-distance: abandons a Gaussian once it cannot be among "
    "the n best (slower here; see docs/strategies.md). int8: computes with 8-bit parameters. max: max approximation, "
    "the best component instead of the sum (slower here on the tied model; see docs/strategies.md).",
    layer="Component layer",
    live=True,
    when={"model": MIXTURES},
    choices_when={
        "partial-distance": {"gmm.selection.enabled": (True,), "gmm.selection.method": ("top-n",)} | ALL_SENONES,
        "int8": (WHOLE, LISTED),
        "max": (WHOLE, LISTED),
    },
)


class Gmm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Gaussian mixture scoring."""

    components: Annotated[int, COMPONENTS] = 42
    senones: Annotated[Literal["all", "active", "ci", "active-ci"], SENONES] = "all"
    ci_beam: Annotated[float, CI_BEAM] = (
        10.0  # the 23 (1e-10) of Sphinx-3's documentation rejects a tenth here: docs/strategies.md
    )
    ci_cap: Annotated[int, CI_CAP] = 0
    selection: Selection = Selection()
    component: Annotated[Literal["full", "partial-distance", "int8", "max"], COMPONENT] = "full"
