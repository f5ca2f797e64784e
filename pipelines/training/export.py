"""From a checkpoint to what the program reads: weights in fp16, and the card that explains them; and the log."""

from __future__ import annotations

import json
import time
from pathlib import Path

import msgspec
from safetensors.numpy import save_file

import assets
from pipelines.models.nets import Card, stored
from pipelines.training import checkpoint
from pipelines.training.recipes import NetRecipe, as_dict
from pipelines.training.train import CARD
from profiler.errors import BadInput
from profiler.files.paths import cache_dir


class ExportError(BadInput):
    """There is nothing to export, or its kind is unknown; the message is one sentence."""


def export(recipe: NetRecipe, folder: Path | None = None) -> Path:
    """Write NAME.safetensors, NAME.json and NAME.log.jsonl, how training went, into `folder`; returns the first.

    `folder` is by default where the program looks.
    """
    trained = cache_dir("training", recipe.name)
    try:
        card = msgspec.json.decode((trained / CARD).read_bytes(), type=Card)
        log = (trained / "log.jsonl").read_text(encoding="utf-8")
    except OSError:
        raise ExportError(f"There is no training of {recipe.name} in {trained} yet.") from None
    place, tensors = checkpoint.read(trained / "checkpoint.safetensors", list(card.shapes))
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
