"""Labelled frames, in an order that every worker knows: minibatch number n is the same one wherever it is taken."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load, save

from pipelines.models.nets import Card
from pipelines.training.corpus import data, labels
from pipelines.training.corpus.data import Frames, Pool, order
from pipelines.training.module import card_for
from pipelines.training.parallel.job import DIVERGED, EXAMINED, SEGMENT
from pipelines.training.parallel.peers import Peers
from profiler.arrays import I64, Array
from profiler.errors import BadInput


@dataclass(frozen=True, eq=False)
class Part:
    """Utterances with a class for each frame; `known`: the frames that have one."""

    pool: Pool
    targets: I64
    known: I64

    def examples(self, at: Array, context: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Frames f32 [n, 2 · context + 1, features] and classes i64 [n] of the frames `at`."""
        heard = self.pool.student_input(at, context, context)
        return torch.from_numpy(heard), torch.from_numpy(self.targets[at])


class Lessons:
    """The training data; `examined`: those of its frames on which the loss is measured. `classes`: their number.

    The loss is that on training frames: a minute of speech is memorised before one on other sentences shows anything.
    """

    def __init__(self, taught: Part, examined: I64, classes: int, context: int, seed: int) -> None:
        self.taught, self.examined = taught, examined
        self.classes, self.context, self.seed = classes, context, seed
        self._epoch, self._taken = -1, np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.taught.known)

    def batch(self, number: int, size: int, share: int = 0, shares: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
        """Minibatch `number` of `size` examples, or one of its equal shares; each epoch in an order of its own."""
        if size > len(self):
            raise BadInput(f"A minibatch of {size} needs as many examples, and there are {len(self)}.")
        epoch, place = divmod(number, len(self) // size)
        if epoch != self._epoch:
            self._epoch, self._taken = epoch, order(len(self), self.seed, epoch)
        taken = self._taken[place * size : (place + 1) * size]
        mine = taken[share * size // shares : (share + 1) * size // shares]
        return self.taught.examples(self.taught.known[mine], self.context)

    def card(self, widths: tuple[int, ...], bottleneck: int) -> Card:
        """The card of a net for these classes; the input is normalised as the taught frames are spread."""
        context = self.context, self.context
        return card_for(self.taught.pool.frames.heard, context, widths, bottleneck, self.classes)

    @torch.no_grad()
    def losses(self, answers: Callable[[torch.Tensor], torch.Tensor], device: torch.device) -> list[float]:
        """Mean cross-entropy of each segment of the examined frames, nats; DIVERGED at most."""
        means: list[float] = []
        for first in range(0, len(self.examined), 20 * SEGMENT):
            x, y = self.taught.examples(self.examined[first : first + 20 * SEGMENT], self.context)
            each = torch.nn.functional.cross_entropy(answers(x.to(device)), y.to(device), reduction="none")
            means += [float(part.mean()) for part in each.split(SEGMENT)]
        # In this order it is DIVERGED for what is no number, too.
        return [min(DIVERGED, mean) for mean in means]


def read(folder: Path, outputs: str, context: int, seed: int, examined: int = EXAMINED) -> Lessons:
    """The labelled shards of `folder`; `outputs`: "senones", or "states", of the phones without context."""
    from pipelines.models import sphinx

    shards = data.shards(folder)
    senones = labels.read(shards)
    mdef = sphinx.load(sphinx.default_directory()).mdef
    classes, class_of = mdef.n_senones, np.arange(mdef.n_senones)
    if outputs == "states":
        classes, class_of = 3 * mdef.n_ci, (3 * mdef.senone_phone + mdef.senone_state).astype(np.int64)
    labelled = senones != labels.UNLABELLED
    targets = np.where(labelled, class_of[np.where(labelled, senones, 0)], -1)
    taught = Part(Pool.of(shards), targets, np.flatnonzero(labelled))
    return Lessons(taught, taught.known[:examined], classes, context, seed)


def shared(peers: Peers, lessons: Lessons | None) -> Lessons:
    """The first worker's lessons, in every worker: other machines need no files."""
    text = b""
    if lessons is not None:
        part = lessons.taught
        text = save(
            {
                "heard": part.pool.frames.heard.astype(np.float32),
                "ends": part.pool.frames.ends,
                "targets": part.targets,
                "known": part.known,
                "examined": lessons.examined,
                "about": np.array([lessons.classes, lessons.context, lessons.seed]),
            }
        )
    found = load(peers.share(text))
    pool = Pool(Frames(found["heard"], found["heard"], found["ends"]))
    classes, context, seed = found["about"].tolist()
    return Lessons(Part(pool, found["targets"], found["known"]), found["examined"], classes, context, seed)
