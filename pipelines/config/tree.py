"""The one typed tree of settings: each is written once, as a field of a struct below.

Type, default, bounds, title, help, unit, the layer of the pipeline it belongs to, whether it can change
while a run goes on, and beside which other settings it acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from pipelines.config.options import ConfigError, flatten, replace, setting

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

DENSE = {
    "model": MIXTURES,
    "frames.rule": ("copy",),
    "gmm.senones": ("all",),
    "gmm.selection.enabled": (False,),
    "gmm.component": ("full",),
}
"""What a device scores: everything."""

IN_ONE_GO = {"search.lattice": (False,), "gmm.senones": ("all",), "dnn.senones": ("all",)}
"""What a device searches: whole blocks of scores, for the best path alone."""


class Frames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frame layer: which frames are scored at all."""

    skip: Annotated[
        int,
        setting(
            "Frame skipping",
            "1 scores every frame; k scores every k-th and gives the others scores by the rule below.",
            layer="Frame layer",
            live=True,
            ge=1,
            le=4,
        ),
    ] = 1
    rule: Annotated[
        Literal["copy", "conditional", "heads"],
        setting(
            "Skipped frames",
            "copy scores every k-th frame, the others repeat the last scored one. conditional skips a frame only while "
            "the nearest codeword stays the same, at most k−1 in a row. heads: a multi-frame net answers for k frames "
            "at once (Vanhoucke 2013).",
            layer="Frame layer",
            live=True,
            choices_when={
                "conditional": {"model": MIXTURES},
                "heads": {"model": ("dnn",), "dnn.senones": ("all",)},
            },
        ),
    ] = "copy"
    codewords: Annotated[
        int,
        setting(
            "Codewords of frames",
            "Size of the codebook that tells whether the sound has changed; with more, fewer frames are skipped.",
            layer="Frame layer",
            unit="codewords",
            live=True,
            ge=16,
            le=4096,
            when={"frames.rule": ("conditional",)},
        ),
    ] = 256


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Gaussian layer: which densities are evaluated."""

    enabled: Annotated[
        bool,
        setting(
            "Gaussian selection",
            "Sum only the densities that the method below selects, instead of all of them.",
            layer="Gaussian layer",
            live=True,
            when={"model": MIXTURES},
        ),
    ] = False
    method: Annotated[
        Literal["none", "top-n", "last-top-n", "vq", "vq-tree", "vq-table", "clusters"],
        setting(
            "Method",
            "top-n sums the n best densities; last-top-n computes the last frame's best first and gives up what cannot "
            "be among them; vq computes the shortlist of the nearest codeword (vq-tree finds it in a binary tree); "
            "vq-table looks scores up by codeword; clusters computes cluster Gaussians and expands the best.",
            layer="Gaussian layer",
            live=True,
            switched_by="gmm.selection.enabled",
            choices_when=dict.fromkeys(("top-n", "last-top-n", "vq-table", "clusters"), ALL_SENONES)
            | dict.fromkeys(("vq", "vq-tree"), (ALL_SENONES, UNTIED)),
        ),
    ] = "top-n"
    top_n: Annotated[
        int,
        setting(
            "Densities kept",
            "How many top-n keeps (pocketsphinx: 4); from about 32 on, selecting costs more than it saves.",
            layer="Gaussian layer",
            unit="per codebook and stream",
            live=True,
            switched_by="gmm.selection.enabled",
            ge=1,
            le=64,
            when={"gmm.selection.method": ("top-n", "last-top-n")},
        ),
    ] = 4
    codewords: Annotated[
        int,
        setting(
            "Codewords",
            "Size of the codebook by which frames are quantised; more fit closer and take longer to search.",
            layer="Gaussian layer",
            unit="codewords",
            live=True,
            ge=16,
            le=4096,
            when={"gmm.selection.method": ("vq", "vq-tree", "vq-table", "clusters")},
        ),
    ] = 512
    threshold: Annotated[
        float,
        setting(
            "Shortlist radius",
            "A Gaussian is on a codeword's shortlist when its mean lies within this normalised squared distance "
            "(Bocchieri 1993); larger keeps more. The likeliest is on the list even when nothing is near.",
            layer="Gaussian layer",
            live=True,
            ge=0.1,
            le=50.0,
            when={"gmm.selection.method": ("vq", "vq-tree")},
        ),
    ] = 0.8  # 30 % of the Gaussians of the continuous model are computed; on development 1.2 points more word errors
    expand: Annotated[
        int,
        setting(
            "Clusters expanded",
            "How many of the best clusters have their own Gaussians evaluated; the others give their cluster's score.",
            layer="Gaussian layer",
            unit="clusters",
            live=True,
            ge=1,
            le=4096,
            when={"gmm.selection.method": ("clusters",)},
        ),
    ] = 64


class Gmm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Gaussian mixture scoring."""

    components: Annotated[
        int,
        setting(
            "Mixture components",
            "Gaussians that each senone owns, per stream; 42 is the size usual in the literature.",
            layer="Scoring",
            unit="per senone",
            ge=8,
            le=128,
            when=UNTIED,
        ),
    ] = 42
    senones: Annotated[
        Literal["all", "asked", "ci", "asked-ci"],
        setting(
            "Senones scored",
            "all of them; asked: those that the search asks for in this frame; ci: those whose context-independent "
            "parent scores well, the others get the parent's score (Lee 2001, Chan 2004); asked-ci: both, as Sphinx-3.",
            layer="GMM layer",
            live=True,
            when={"model": MIXTURES},
        ),
    ] = "all"
    ci_beam: Annotated[
        float,
        setting(
            "CI beam",
            "Senones are computed whose context-independent parent scores within this of the best parent.",
            layer="GMM layer",
            unit="nat",
            live=True,
            ge=0.0,
            le=200.0,
            when={"gmm.senones": ("ci", "asked-ci")},
        ),
    ] = 10.0  # the 23 (1e-10) of Sphinx-3's documentation rejects a tenth here: docs/strategies.md
    ci_cap: Annotated[
        int,
        setting(
            "Most senones",
            "The CI beam is tightened until at most this many context-dependent senones are computed in a frame "
            "(Sphinx-3's maxcdsenpf); 0 sets no limit.",
            layer="GMM layer",
            unit="senones",
            live=True,
            ge=0,
            le=100000,
            when={"gmm.senones": ("ci", "asked-ci")},
        ),
    ] = 0
    selection: Selection = Selection()
    component: Annotated[
        Literal["full", "partial-distance", "int8", "max"],
        setting(
            "Component",
            "full computes every Gaussian and sums exactly; partial-distance gives a Gaussian up that can no longer be "
            "among the n best; int8 computes with 8-bit parameters; max takes the best component and not the sum.",
            layer="Component layer",
            live=True,
            when={"model": MIXTURES},
            choices_when={
                "partial-distance": {
                    "gmm.selection.enabled": (True,),
                    "gmm.selection.method": ("top-n",),
                }
                | ALL_SENONES,
                "int8": (WHOLE, LISTED),
                "max": (WHOLE, LISTED),
            },
        ),
    ] = "full"


class Dnn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scoring by a feed-forward neural net."""

    net: Annotated[
        str,
        setting(
            "Net",
            "The name of a net that came with the program, or the path of a .safetensors file with its card (.json) "
            "beside it.",
            layer="Neural net",
            when={"model": ("dnn",)},
        ),
    ] = "base"
    senones: Annotated[
        Literal["all", "asked"],
        setting(
            "Outputs computed",
            "all of the last layer for a whole block; asked: in each frame only the senones that the search asks for "
            "(lazy evaluation, Vanhoucke 2011).",
            layer="Neural net",
            live=True,
            when={"model": ("dnn",)},
        ),
    ] = "all"
    dtype: Annotated[
        Literal["fp32", "int8"],
        setting(
            "Arithmetic",
            "int8: weights and activations as 8-bit integers, with a scale for each output and each frame (Vanhoucke "
            "2011).",
            layer="Neural net",
            when={"model": ("dnn",)},
        ),
    ] = "fp32"


NO_GRAMMAR = {"graph.grammar": ("",)}
"""A grammar says by itself what can be recognised."""


class Graph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The search graph: dictionary and language model, compiled once and cached."""

    vocabulary: Annotated[
        int,
        setting(
            "Vocabulary",
            "How many words can be recognised: the most probable words of the language model that the dictionary has "
            "(some 72 000 of those that ship with pocketsphinx).",
            layer="Graph",
            unit="words",
            ge=1,
            le=1000000,
            when=NO_GRAMMAR,
        ),
    ] = 5000
    order: Annotated[
        Literal[1, 2, 3],
        setting(
            "N-gram order",
            "1: each word by its own probability. 2, 3: by the one or two words before it, backing off where pruned.",
            layer="Graph",
            when=NO_GRAMMAR,
        ),
    ] = 2
    bigrams: Annotated[
        int,
        setting(
            "Bigrams kept",
            "The language model is pruned to this many word pairs; more make a larger graph and fewer errors.",
            layer="Graph",
            unit="word pairs",
            ge=0,
            le=100000000,
            when={**NO_GRAMMAR, "graph.order": (2, 3)},
        ),
    ] = 300000
    trigrams: Annotated[
        int,
        setting(
            "Trigrams kept",
            "The language model is pruned to this many triples of words.",
            layer="Graph",
            unit="word triples",
            ge=0,
            le=100000000,
            when={**NO_GRAMMAR, "graph.order": (3,)},
        ),
    ] = 200000
    pruning: Annotated[
        Literal["count", "entropy"],
        setting(
            "Pruning",
            "Which n-grams are kept: count takes those that the model expects most often; entropy those whose loss "
            "would change the model most (Stolcke 1998).",
            layer="Graph",
            when={**NO_GRAMMAR, "graph.order": (2, 3)},
        ),
    ] = "entropy"
    language_model: Annotated[
        str,
        setting(
            "Language model",
            "A .lm.bin or ARPA file (also gzip); empty: the one that ships with pocketsphinx.",
            layer="Graph",
            when=NO_GRAMMAR,
        ),
    ] = ""
    dictionary: Annotated[
        str,
        setting(
            "Dictionary",
            "A pronunciation dictionary in CMU form; empty: the one that ships with pocketsphinx.",
            layer="Graph",
        ),
    ] = ""
    grammar: Annotated[
        str,
        setting(
            "Grammar",
            "What to recognise instead of the language model: a JSGF file (.gram, .jsgf), a plain list of words or "
            "phrases, one a line, of which any number may be said in any order, or one that ships with the program: "
            "cards, digits, robot.",
            layer="Graph",
        ),
    ] = ""


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Token passing over the graph."""

    device: Annotated[
        Literal["cpu", "torch-cpu", "cuda", "mps", "xpu"],
        setting(
            "Search on",
            "cpu: token passing in compiled code. Others: the same arcs as tensor operations on that device; torch-cpu "
            "runs these on the processor.",
            layer="Search",
            choices_when=dict.fromkeys(DEVICES, IN_ONE_GO),
        ),
    ] = "cpu"
    beam: Annotated[
        float,
        setting(
            "Beam",
            "Tokens that cost this much more than the best are dropped (negative log likelihood, acoustics scaled).",
            layer="Search",
            unit="nat",
            live=True,
            ge=1.0,
            le=40.0,
        ),
    ] = 13.0
    max_active: Annotated[
        int,
        setting(
            "Most tokens",
            "At most about this many tokens survive a frame (histogram pruning).",
            layer="Search",
            unit="tokens",
            live=True,
            ge=50,
            le=100000,
        ),
    ] = 7000
    min_active: Annotated[
        int,
        setting(
            "Fewest tokens",
            "The beam widens when fewer than this many tokens lie within it.",
            layer="Search",
            unit="tokens",
            live=True,
            ge=0,
            le=100000,
        ),
    ] = 20  # the default of Kaldi's FasterDecoder
    governor: Annotated[
        bool,
        setting(
            "Hold real-time factor",
            "Move the beam while decoding so that processing time / audio time stays at the wished value.",
            layer="Search",
            live=True,
        ),
    ] = False
    wished_rtf: Annotated[
        float,
        setting(
            "Wished real-time factor",
            "What the governor holds: processing time / audio time.",
            layer="Search",
            live=True,
            ge=0.001,
            le=10.0,
            switched_by="search.governor",
        ),
    ] = 0.05
    lattice: Annotated[
        bool,
        setting(
            "Keep alternatives",
            "Record what nearly won, so that each utterance also gets its best other word sequences and a confidence "
            "for each word.",
            layer="Search",
            when={"search.device": ("cpu",)},
        ),
    ] = False
    lattice_beam: Annotated[
        float,
        setting(
            "Lattice beam",
            "Alternatives that cost this much more than the best are not kept.",
            layer="Search",
            unit="nat",
            switched_by="search.lattice",
            when={"search.device": ("cpu",)},
            ge=0.0,
            le=40.0,
        ),
    ] = 6.0
    nbest: Annotated[
        int,
        setting(
            "Word sequences",
            "How many different word sequences are given for an utterance at most, the best first.",
            layer="Search",
            live=True,
            switched_by="search.lattice",
            when={"search.device": ("cpu",)},
            ge=1,
            le=100,
        ),
    ] = 1
    acoustic_scale: Annotated[
        float,
        setting(
            "Acoustic scale",
            "Weight of the acoustic log likelihoods against the language model.",
            layer="Search",
            live=True,
            ge=0.01,
            le=1.0,
        ),
    ] = 0.115  # tuned on development sentences, with the penalty below: tests/bench/decode.py compares
    insertion_penalty: Annotated[
        float,
        setting(
            "Word insertion penalty",
            "Cost added for each word; larger gives fewer and longer words.",
            layer="Search",
            unit="nat",
            live=True,
            ge=-5.0,
            le=10.0,
        ),
    ] = 1.0


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


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of a run."""

    pace: Annotated[
        float,
        setting(
            "Pace",
            "0 decodes as fast as possible; 1, 2, 4 feed the audio at that multiple of real time.",
            layer="Audio",
            unit="× real time",
            live=True,
            ge=0.0,
            le=100.0,
        ),
    ] = 0.0
    loop: Annotated[
        bool,
        setting(
            "Loop", "Start again with the first file after the last one.", layer="Audio", live=True
        ),
    ] = False
    block: Annotated[
        int,
        setting(
            "Block",
            "Frames scored and searched in one call: larger blocks reuse what was loaded from memory, and wait longer.",
            layer="Audio",
            unit="frames",
            live=True,
            ge=1,
            le=256,
        ),
    ] = 16
    model: Annotated[
        Literal["ptm", "continuous", "single-stream", "dnn"],
        setting(
            "Acoustic model",
            "ptm: the phonetically tied mixture model as shipped. continuous: derived from it, each senone owns its "
            "Gaussians. single-stream: one mixture of 39-dimensional Gaussians per senone. dnn: a neural net "
            "that learnt from the mixtures.",
            layer="Scoring",
        ),
    ] = "ptm"
    model_directory: Annotated[
        str,
        setting(
            "Model folder",
            "A CMUSphinx acoustic model (ptm, semi-continuous or continuous) to open instead of the shipped one.",
            layer="Scoring",
        ),
    ] = ""
    device: Annotated[
        Literal["cpu", "torch-cpu", "cuda", "mps", "xpu"],
        setting(
            "Scoring on",
            "cpu: compiled code. Others: torch on that device; torch-cpu runs the device code on the processor.",
            layer="Scoring",
            choices_when=dict.fromkeys(DEVICES, DENSE),
        ),
    ] = "cpu"
    placement: Placement = Placement()
    threads: Annotated[
        int,
        setting(
            "Threads",
            "Threads of the scoring kernels; search is serial.",
            layer="Scoring",
            unit="threads",
            ge=1,
            le=64,
        ),
    ] = 1
    frames: Frames = Frames()
    gmm: Gmm = Gmm()
    dnn: Dnn = Dnn()
    graph: Graph = Graph()
    search: Search = Search()
    counters: Annotated[
        bool,
        setting(
            "Count events",
            "Read the processor's and the kernel's counters after every stage (cycles, cache misses, page faults …, "
            "as far as this machine has them: see `asrscope doctor`). Adds some 3 µs to every span.",
            layer="Instrument",
        ),
    ] = False


def from_dict(tree: Mapping[str, Any], where: str = "configuration") -> Config:
    """Build a configuration; settings left out keep their default. ConfigError names what is wrong."""
    config = Config()
    for key, value in flatten(tree):
        try:
            config = replace(config, key, value)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
    return config
