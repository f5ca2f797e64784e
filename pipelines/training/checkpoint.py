"""State of a training: parameters, Adam's averages and the place in the data, in one safetensors file.

Also what the program reads of it: weights in fp16, the card that explains them, and the log.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors

import assets
from pipelines.models.nets import Card, stored
from pipelines.training.module import FeedForward
from pipelines.training.recipes import NetRecipe, as_dict
from profiler.errors import BadInput
from profiler.files.outputs import writing
from profiler.files.paths import cache_dir

CARD = "card.json"
MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass
class Position:
    """Progress of a training. `frames`: in all; `at`: of the epoch, whose data are the first `shards`."""

    step: int = 0
    frames: int = 0
    epoch: int = 0
    at: int = 0
    shards: int = 0
    seconds: float = 0.0  # Of training, over all sessions
    recipe: dict[str, Any] = field(default_factory=dict)
    """What it is made by: the fields of the recipe, which must be the same to go on."""


def save(path: Path, module: FeedForward, adam: torch.optim.Adam, place: Position) -> None:
    """Write the checkpoint; the one before stays until this one is whole."""
    tensors = {}
    for name, parameter in module.named_parameters():
        tensors[name] = parameter.detach().cpu()
        for moment in MOMENTS:
            tensors[f"{moment} {name}"] = adam.state[parameter][moment].cpu()
    with writing(path, "the checkpoint") as draft:
        save_tensors(tensors, draft, {"place": json.dumps(asdict(place))})


@contextmanager
def _opened(path: Path, framework: str) -> Iterator[tuple[Position, Any]]:
    """The place, and the file; BadInput when it is not a whole checkpoint of the net that is read within."""
    try:
        with safe_open(path, framework=framework) as file:
            yield Position(**json.loads(file.metadata()["place"])), file
    except (OSError, SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise BadInput(f"{path} is not a whole checkpoint of this net: {error}.") from None


def load(path: Path, module: FeedForward, adam: torch.optim.Adam, recipe: dict[str, Any]) -> Position:
    """Put `module` and `adam` where the checkpoint was; BadInput when it is of something else."""
    with _opened(path, "pt") as (place, file), torch.no_grad():
        # What recipes did not have yet when it was written was off then.
        then = {name: type(value)() for name, value in recipe.items()} | place.recipe
        changed = [name for name, value in recipe.items() if then[name] != value]
        if changed:
            raise BadInput(f"{path} belongs to a recipe with another {changed[0]}; move it away to begin anew.")
        for name, parameter in module.named_parameters():
            parameter.copy_(file.get_tensor(name))
            adam.state[parameter] = {"step": torch.tensor(float(place.step))} | {
                moment: file.get_tensor(f"{moment} {name}").to(parameter.device) for moment in MOMENTS
            }
    return place


def export(recipe: NetRecipe, folder: Path | None = None) -> Path:
    """Write NAME.safetensors, NAME.json and NAME.log.jsonl into `folder` (or where the program looks)."""
    trained = cache_dir("training", recipe.name)
    try:
        card = msgspec.json.decode((trained / CARD).read_bytes(), type=Card)
        log = (trained / "log.jsonl").read_text(encoding="utf-8")
    except OSError:
        raise BadInput(f"There is no training of {recipe.name} in {trained} yet.") from None
    with _opened(trained / "checkpoint.safetensors", "numpy") as (place, file):
        tensors = {name: file.get_tensor(name) for name in card.shapes}
    last = json.loads(log.splitlines()[-1]) if log else {}
    about = card.about | {
        "recipe": as_dict(recipe),
        "command": f"python -m pipelines.training train {recipe.name}",
        "date": time.strftime("%Y-%m-%d"),
        "parameters": card.n_parameters,
        "frames": place.frames,
        "shards": place.shards,
        "hours": round(place.seconds / 3600, 2),
        "frames_per_s": round(place.frames / place.seconds),
        "divergence_held_out": last.get("held_out"),
        "same_best_held_out": last.get("same_best"),
    }
    folder = folder or assets.path("nets")
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / f"{recipe.name}.safetensors"
    save_file(stored(tensors), weights)
    weights.chmod(0o644)  # the library makes files that nobody else may read
    write_card(msgspec.structs.replace(card, about=about), weights.with_suffix(".json"))
    weights.with_suffix(".log.jsonl").write_text(log, encoding="utf-8")
    return weights


def write_card(card: Card, path: Path) -> None:
    """Write a card so that a person can read it."""
    text = msgspec.json.format(msgspec.json.encode(card), indent=1).decode()
    path.write_text(text + "\n", encoding="utf-8")
