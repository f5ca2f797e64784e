"""Settings of the search."""

from typing import Annotated, ClassVar, Literal

import msgspec

from pipelines.config.conditions import CTC, DEVICES, IN_ONE_GO
from pipelines.config.options import Toggle, Traits, setting

DEVICE = setting(
    "Search device",
    "cpu: token passing in compiled code. Others run the search as tensor operations on that device; "
    "torch-cpu runs them on the processor. cuda: one kernel for a block of frames, if numba-cuda is installed.",
    choices_when=dict.fromkeys(DEVICES, IN_ONE_GO),
    live=False,
)
BEAM = setting(
    "Beam",
    "Tokens that cost this much more than the best are dropped (negative log likelihood; acoustics scaled).",
    unit="nat",
    main=True,
    ge=1.0,
    le=40.0,
)
MAX_ACTIVE = setting(
    "Max active",
    "At most about this many tokens survive each frame (histogram pruning).",
    unit="tokens",
    main=True,
    ge=50,
    le=100000,
)
MIN_ACTIVE = setting(
    "Min active", "The beam widens when fewer than this many tokens are within it.", unit="tokens", ge=0, le=100000
)
TARGET_RTF = setting(
    "Target RTF",
    "The real-time factor (processing time / audio time) that the adaptive beam holds.",
    ge=0.001,
    le=10.0,
    switched_by="search.adaptive_beam",
)
LATTICE = setting(
    "Lattice",
    "Record a lattice of alternatives. Each utterance then also gets an n-best list and a confidence for each word.",
    when={"search.device": ("cpu",)},
    live=False,
)
LATTICE_BEAM = setting(
    "Lattice beam",
    "Alternatives that cost this much more than the best path are left out of the lattice. The beam narrows "
    "where the lattice would take over 800 MB, and the run says so.",
    unit="nat",
    switched_by="search.lattice",
    when={"search.device": ("cpu",)},
    ge=0.0,
    le=40.0,
    live=False,
)
NBEST = setting(
    "N-best",
    "Maximum number of different hypotheses per utterance, best first.",
    switched_by="search.lattice",
    when={"search.device": ("cpu",)},
    ge=1,
    le=100,
)
BLANK_SKIPPING = setting(
    "Blank skipping",
    "Of successive frames in which the blank of a CTC net is more probable than this, only the first is "
    "searched. 1 searches every frame.",
    main=True,
    words={1.0: "off"},
    toggle=Toggle(
        "Blank skipping",
        "Search only the first of successive frames that the net takes for blank",
        place=2,
        key="N",
        off=1.0,
        on=0.95,
        without="every frame searched",
    ),
    when=CTC,
    ge=0.5,
    le=1.0,
)
ACOUSTIC_SCALE = setting(
    "Acoustic scale", "Weight of the acoustic log likelihoods relative to the language model.", ge=0.01, le=10.0
)
INSERTION_PENALTY = setting(
    "Word insertion penalty",
    "Cost added for each word. Higher values give fewer, longer words.",
    unit="nat",
    ge=-5.0,
    le=10.0,
)


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Token passing over the graph."""

    TRAITS: ClassVar = Traits(live=True)

    device: Annotated[Literal["cpu", "torch-cpu", "cuda", "mps", "xpu"], DEVICE] = "cpu"
    beam: Annotated[float, BEAM] = 13.0
    max_active: Annotated[int, MAX_ACTIVE] = 7000
    min_active: Annotated[int, MIN_ACTIVE] = 20  # the default of Kaldi's FasterDecoder
    adaptive_beam: Annotated[
        bool, setting("Adaptive beam", "Adjust the beam while decoding to hold the target real-time factor.")
    ] = False
    target_rtf: Annotated[float, TARGET_RTF] = 0.05
    lattice: Annotated[bool, LATTICE] = False
    lattice_beam: Annotated[float, LATTICE_BEAM] = 6.0
    nbest: Annotated[int, NBEST] = 1
    blank_skipping: Annotated[float, BLANK_SKIPPING] = 1.0
    acoustic_scale: Annotated[float, ACOUSTIC_SCALE] = 0.115  # tuned on development sentences: bench decode compares
    insertion_penalty: Annotated[float, INSERTION_PENALTY] = 1.0
