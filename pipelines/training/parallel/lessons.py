"""Labelled frames, in an order that every worker knows: minibatch number n is the same one wherever it is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from pipelines.models.nets import FORMAT, Card, Layer
from pipelines.training.corpus import data, labels
from pipelines.training.corpus.data import HELD_OUT, Frames
from pipelines.training.corpus.pool import Pool, order
from pipelines.training.parallel.job import SEGMENT
from pipelines.training.parallel.peers import Peers
from profiler.arrays import I64, Array
from profiler.errors import BadInput


@dataclass(frozen=True, eq=False)
class Part:
    """Utterances with a class for each frame; `known`: the frames that have one, and one that is taught."""

    pool: Pool
    targets: I64
    known: I64

    def examples(self, at: Array, context: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Frames f32 [n, 2 · context + 1, features] and classes i64 [n] of the frames `at`."""
        heard = self.pool.heard(at, context, context)
        return torch.from_numpy(heard), torch.from_numpy(self.targets[at])


class Lessons:
    """What is taught and what is held out. `classes`: how many are told apart."""

    def __init__(self, taught: Part, held_out: Part, classes: int, context: int, seed: int) -> None:
        self.taught, self.held_out = taught, held_out
        self.classes, self.context, self._seed = classes, context, seed
        self._epoch, self._taken = -1, np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.taught.known)

    def batch(
        self, number: int, size: int, share: int = 0, shares: int = 1
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Minibatch `number` of `size` examples, or one of its equal shares; epoch after epoch, each in its own order.

        BadInput where a minibatch is larger than all there is.
        """
        if size > len(self):
            raise BadInput(
                f"A minibatch of {size} needs as many examples, and there are {len(self)}."
            )
        epoch, place = divmod(number, len(self) // size)
        if epoch != self._epoch:
            self._epoch, self._taken = epoch, order(len(self), self._seed, epoch)
        taken = self._taken[place * size : (place + 1) * size]
        mine = taken[share * size // shares : (share + 1) * size // shares]
        return self.taught.examples(self.taught.known[mine], self.context)

    def card(self, widths: tuple[int, ...], bottleneck: int) -> Card:
        """The card of a net for these classes; the input is normalised as the taught frames are spread."""
        sample = self.taught.pool.frames.heard.astype(np.float64)
        layers = [Layer(width) for width in widths]
        if bottleneck:
            layers.append(Layer(bottleneck, relu=False))
        return Card(
            format=FORMAT,
            left=self.context,
            right=self.context,
            mean=sample.mean(0).tolist(),
            scale=(1 / np.maximum(sample.std(0), 1e-6)).tolist(),
            senones=self.classes,
            layers=layers,
        )

    @torch.no_grad()
    def losses(
        self, answers: Callable[[torch.Tensor], torch.Tensor], device: torch.device
    ) -> list[float]:
        """Mean cross-entropy of each segment of the held-out utterances, nats."""
        known = self.held_out.known
        found: list[torch.Tensor] = []
        for first in range(0, len(known), 20 * SEGMENT):
            x, y = self.held_out.examples(known[first : first + 20 * SEGMENT], self.context)
            said = answers(x.to(device))
            each = torch.nn.functional.cross_entropy(said, y.to(device), reduction="none")
            found.append(each.cpu())
        return [float(part.mean()) for part in torch.cat(found).split(SEGMENT)]


def read(folder: Path, outputs: str, context: int, seed: int) -> Lessons:
    """The labelled data of `folder`; `outputs`: "senones", or "states", of the phones without their context."""
    shards, held_out = data.shards(folder), folder / f"{HELD_OUT}.safetensors"
    frames = data.joined([data.read(path) for path in shards])
    held = data.read(held_out)
    return of(frames, labels.read(shards), held, labels.read([held_out]), outputs, context, seed)


def of(
    frames: Frames,
    senones: Array,
    held: Frames,
    held_senones: Array,
    outputs: str,
    context: int,
    seed: int,
) -> Lessons:
    """Lessons from frames and the senone of each (labels.UNLABELLED: none)."""
    classes, class_of = _classes(outputs)
    taught = _part(frames, senones, class_of, None)
    there = np.unique(taught.targets[taught.known])
    return Lessons(taught, _part(held, held_senones, class_of, there), classes, context, seed)


def _part(frames: Frames, senones: Array, class_of: I64, there: I64 | None) -> Part:
    labelled = senones != labels.UNLABELLED
    targets = np.where(labelled, class_of[np.where(labelled, senones, 0)], -1)
    # A class that is never taught says nothing of how well the others are.
    known = labelled if there is None else labelled & np.isin(targets, there)
    return Part(Pool(frames), targets, np.flatnonzero(known))


def _classes(outputs: str) -> tuple[int, I64]:
    """How many classes there are, and that of each senone."""
    from pipelines.models import sphinx

    mdef = sphinx.load(sphinx.default_directory()).mdef
    if outputs == "senones":
        return mdef.n_senones, np.arange(mdef.n_senones)
    return 3 * mdef.n_ci, (3 * mdef.senone_phone + mdef.senone_state).astype(np.int64)


def shared(peers: Peers, lessons: Lessons | None) -> Lessons:
    """The first worker's lessons, in every worker: other machines need no files."""
    numbers = torch.zeros(5, dtype=torch.int64)
    if lessons is not None:
        sizes = (len(lessons.taught.targets), len(lessons.held_out.targets))
        numbers = torch.tensor([lessons.classes, lessons.context, lessons._seed, *sizes])
    peers.broadcast_(numbers)
    classes, context, seed, *sizes_of = (int(n) for n in numbers)
    parts = []
    for place, size in enumerate(sizes_of):
        mine = None if lessons is None else (lessons.taught, lessons.held_out)[place]
        parts.append(_shared_part(peers, mine, size))
    return Lessons(parts[0], parts[1], classes, context, seed)


def _shared_part(peers: Peers, part: Part | None, frames: int) -> Part:
    counts = torch.zeros(3, dtype=torch.int64)
    if part is not None:
        heard = part.pool.frames.heard
        counts = torch.tensor([heard.shape[1], len(part.pool.frames.ends), len(part.known)])
    peers.broadcast_(counts)
    features, utterances, known = (int(n) for n in counts)
    tensors = [
        torch.empty((frames, features), dtype=torch.float32),
        torch.empty(utterances, dtype=torch.int32),
        torch.empty(frames, dtype=torch.int64),
        torch.empty(known, dtype=torch.int64),
    ]
    if part is not None:
        tensors = [
            torch.from_numpy(part.pool.frames.heard.astype(np.float32)),
            torch.from_numpy(part.pool.frames.ends.astype(np.int32)),
            torch.from_numpy(part.targets),
            torch.from_numpy(part.known),
        ]
    for tensor in tensors:
        peers.broadcast_(tensor)
    heard, ends, targets, taken = (tensor.numpy() for tensor in tensors)
    return Part(Pool(Frames(heard, heard, ends)), targets, taken)
