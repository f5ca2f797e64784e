"""The nets that are trained here, each as data: shape, teacher, schedule. One loop (`train`) makes them all.

large and base learn from the mixtures. Then small and small-hard can be made, which need large; low-rank, sparse and
sparse-blocks, which begin from base; and multi-frame, which begins from small. In processor time one core with
bfloat16 instructions takes in a second some 2 600 frames for large, 4 200 for base, 5 000 for small, 13 900 for
small-hard, 5 900 for low-rank, 4 400 for sparse, 4 000 for sparse-blocks and 2 100 for multi-frame: with the budgets
below 13, 16, 7, 3, 3, 4, 4 and 8 minutes. The cards say how long each really took, on a busy machine.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from profiler.errors import BadInput

GMM = "gmm"  # The teacher that is no net: the tied mixtures' exact senone scores


@dataclass(frozen=True)
class NetRecipe:
    """How a net is made. Widths are those of the hidden layers, with ReLU."""

    name: str
    title: str
    widths: tuple[int, ...] = (512, 512, 512, 512)
    bottleneck: int = 256
    """Width of a last layer without ReLU, which makes the output layer low-rank (Sainath 2013); 0: none."""
    heads: int = 1
    left: int = 7
    right: int = 7  # Frames of context. Features already hold differences over three frames on each side.
    teacher: str = GMM  # GMM, or the name of an exported net
    hard: bool = False  # Learn the labels of forced alignment, and not from the teacher, which then only validates
    start: str = ""
    """The exported net that it begins from, with its shape; then `widths`, `bottleneck` and context say nothing."""
    low_rank: float = 0.0  # Of the start: factor it to this share of its weights (`shrink`); 0: leave it
    kept: float = 0.0  # Of the start: keep this share of the weights, the others stay zero; 0: keep all
    kept_blocks: float = 0.0  # Likewise of blocks of weights
    temperature: float = 10 / 3
    """Scores are divided by it before the softmax (Hinton 2015), so that the pupil learns the order of the
    unlikely senones too, which the search compares. After 0.28 million frames a net of 3 × 512 made 0.421 word
    errors per word at 1, 0.412 at 3.3 and 0.420 at 6.7 (40 development sentences, the mixtures 0.397)."""
    frames: int = 4_000_000  # Frames to train on, over all passes: the budget that the learning rate falls over
    batch: int = 512
    rate: float = 1e-3  # Of Adam, at its highest
    warm_up: float = 0.01
    """Share of the budget over which the rate rises from nothing; then it falls in a line to nothing."""
    seed: int = 1


BASE = NetRecipe("base", "4 × 512")
SMALL = NetRecipe("small", "3 × 256, taught by large", (256, 256, 256), 128, frames=2_000_000)

TUNED = replace(BASE, start="base", frames=1_000_000, rate=5e-4)

RECIPES = {
    recipe.name: recipe
    for recipe in (
        replace(BASE, name="large", title="6 × 1024", widths=(1024,) * 6, frames=2_000_000, batch=1024, rate=1e-3),
        BASE,
        replace(SMALL, teacher="large"),
        replace(SMALL, name="small-hard", title="3 × 256, taught by hard labels", hard=True),
        replace(TUNED, name="low-rank", title="base at 30 % of its size", low_rank=0.3),
        replace(TUNED, name="sparse", title="base with 30 % of its weights", kept=0.3),
        replace(TUNED, name="sparse-blocks", title="base with 30 % of its blocks", kept_blocks=0.3),
        replace(TUNED, name="multi-frame", title="small, answering for four frames", start="small", heads=4),
    )
}


def as_dict(recipe: NetRecipe) -> dict[str, Any]:
    made_by: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))
    del made_by["title"]
    return made_by


def find(name: str) -> NetRecipe:
    """The recipe called `name`; BadInput lists what there is."""
    if name not in RECIPES:
        raise BadInput(f"There is no recipe {name!r}; there are {', '.join(RECIPES)}.")
    return RECIPES[name]
