"""State of a training: parameters, Adam's averages and the place in the data, in one safetensors file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from pipelines.training.module import FeedForward
from profiler.errors import BadInput
from profiler.files.outputs import writing

MOMENTS = ("exp_avg", "exp_avg_sq")


class CheckpointError(BadInput):
    """A checkpoint that cannot be gone on from; the message is one sentence."""


@dataclass
class Place:
    """Progress of a training. `frames`: in all; `at`: of the epoch, whose data are the first `shards`."""

    step: int = 0
    frames: int = 0
    epoch: int = 0
    at: int = 0
    shards: int = 0
    seconds: float = 0.0
    """Of training, over all sessions."""
    recipe: dict[str, Any] = field(default_factory=dict)
    """What it is made by: the fields of the recipe, which must be the same to go on."""


def save(path: Path, module: FeedForward, adam: torch.optim.Adam, place: Place) -> None:
    """Write the checkpoint; the one before stays until this one is whole."""
    tensors = {}
    for name, parameter in module.named_parameters():
        tensors[name] = parameter.detach().cpu()
        for moment in MOMENTS:
            tensors[f"{moment} {name}"] = adam.state[parameter][moment].cpu()
    with writing(path, "the checkpoint") as draft:
        save_file(tensors, draft, {"place": json.dumps(asdict(place))})


def read(path: Path, names: Sequence[str]) -> tuple[Place, dict[str, Any]]:
    """Place and parameters alone, f32; CheckpointError when it is not a whole checkpoint of such a net."""
    try:
        with safe_open(path, framework="numpy") as file:
            place = Place(**json.loads(file.metadata()["place"]))
            return place, {name: file.get_tensor(name) for name in names}
    except (OSError, SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path} is not a whole checkpoint of this net: {error}.") from None


def load(path: Path, module: FeedForward, adam: torch.optim.Adam, recipe: dict[str, Any]) -> Place:
    """Put `module` and `adam` where the checkpoint was; CheckpointError when it is of something else."""
    try:
        with safe_open(path, framework="pt") as file:
            place = Place(**json.loads(file.metadata()["place"]))
            # What recipes did not have yet when it was written was off then.
            then = {name: type(value)() for name, value in recipe.items()} | place.recipe
            changed = [name for name, value in recipe.items() if then[name] != value]
            if changed:
                raise CheckpointError(
                    f"{path} belongs to a recipe with another {changed[0]}; move it away to begin anew."
                )
            with torch.no_grad():
                for name, parameter in module.named_parameters():
                    parameter.copy_(file.get_tensor(name))
                    adam.state[parameter] = {"step": torch.tensor(float(place.step))} | {
                        moment: file.get_tensor(f"{moment} {name}").to(parameter.device) for moment in MOMENTS
                    }
    except (OSError, SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path} is not a whole checkpoint of this net: {error}.") from None
    return place
