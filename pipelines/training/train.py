"""The training loop: soft targets from a teacher, Adam, checkpoints to go on from.

Minimises the cross-entropy of softmax(teacher / T) and softmax(net / T), T the recipe's temperature (Hinton 2015; for
acoustic nets Li et al. 2014). The teacher answers for the next batch while this one is learnt, in a thread of its own.
The same recipe, data and number of threads give the same net, bit for bit, in one go or in many.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TextIO

import msgspec
import numpy as np
import torch

from pipelines.config import Config
from pipelines.models import nets, shrink, sphinx
from pipelines.models.nets import Card, Net
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import build_scorer
from pipelines.training import checkpoint
from pipelines.training.checkpoint import CARD, Position
from pipelines.training.corpus import data, labels
from pipelines.training.corpus.data import HELD_OUT, CorpusError, Pool, Progress, order
from pipelines.training.module import FeedForward, card_for, divergence
from pipelines.training.recipes import GMM, NetRecipe, as_dict
from profiler.arrays import Array
from profiler.files.paths import cache_dir
from profiler.spans import NullLane

GMM_BLOCK = 64  # Frames that the mixtures are given at a time; more does not make them faster


class Mixtures:
    """The tied mixtures themselves, every senone and every density."""

    def __init__(self, model: AcousticModel) -> None:
        self._scorer = build_scorer(Config(), model)

    def scores(self, pool: Pool, at: Array) -> torch.Tensor:
        """Log likelihoods f32 [n, senones]."""
        features = pool.clean(at)[:, 0]
        scores = np.empty((len(at), self._scorer.n_senones), np.float32)
        for first in range(0, len(at), GMM_BLOCK):
            block = features[first : first + GMM_BLOCK]
            scores[first : first + len(block)] = self._scorer.score(block, 0, NullLane())
        return torch.from_numpy(scores)


class LargerNet:
    """A trained net on clean input, without the changes of the student's (Li et al. 2014)."""

    def __init__(self, net: Net, device: torch.device) -> None:
        self._card = net.card
        self._module = FeedForward(net.card).to(device)
        self._module.take(net.tensors)

    @torch.no_grad()
    def scores(self, pool: Pool, at: Array) -> torch.Tensor:
        """Log posteriors f32 [n, senones] of its first head."""
        inputs = torch.from_numpy(pool.clean(at, self._card.left, self._card.right))
        return self._module.answers(inputs)[0]


Teacher = Mixtures | LargerNet


CHECKPOINT_S = 120.0
REPORT_FRAMES = 100_000
HELD_OUT_FRAMES = 8_192  # a random choice; more moves the figures by less than a percent
VALIDATION_BATCH = 1_024
RUN = 4
"""Frames that follow each other in a batch of a multi-frame net, so that the teacher answers for 7 and not for 16."""


class Lesson(NamedTuple):
    """A batch: what the net hears, f32 [n, frames of context, 39]; and for each head what it ought to say, the
    teacher's scores f32 [n, senones] or labels i64 [n]."""

    heard: torch.Tensor
    wanted: list[torch.Tensor]


def begin(
    recipe: NetRecipe, shards: Path, device: torch.device, folder: Path | None = None, mixtures: Mixtures | None = None
) -> Trainer:
    """A trainer for `recipe` on the data in the folder `shards`, where its last checkpoint in `folder` was.

    `folder`: by default one in the cache. `mixtures`: those that may teach, made where they are not given. Raises
    BadInput (one sentence) when the data, the teacher's net or the one to start from are not there.
    """
    model = sphinx.load(sphinx.default_directory())
    folder = folder or cache_dir("training", recipe.name)

    def exported(name: str) -> Net:
        return nets.load(nets.find(name), model.n_senones)

    first = started(exported(recipe.start), recipe) if recipe.start else None
    if first is None:
        heard = data.read(shards / f"{HELD_OUT}.safetensors").heard
        context = recipe.left, recipe.right
        card = card_for(heard, context, recipe.widths, recipe.bottleneck, model.n_senones, recipe.heads)
    else:
        card = first.card
    if (described := shards / data.RECIPE).exists():
        card = msgspec.structs.replace(card, about={"data": json.loads(described.read_text(encoding="utf-8"))})
    (folder / CARD).write_bytes(msgspec.json.encode(card))
    teacher = (mixtures or Mixtures(model)) if recipe.teacher == GMM else LargerNet(exported(recipe.teacher), device)
    return Trainer(recipe, card, teacher, shards, folder, device, first)


def started(net: Net, recipe: NetRecipe) -> Net:
    if recipe.low_rank:
        net = shrink.low_rank(net, recipe.low_rank)
    if recipe.kept:
        net = shrink.sparse(net, recipe.kept)
    if recipe.kept_blocks:
        net = shrink.blocks(net, recipe.kept_blocks)
    return shrink.with_heads(net, recipe.heads) if recipe.heads > 1 else net


class Trainer:
    """One net on its way. `folder` holds its checkpoint and its log, and is made when there is none."""

    def __init__(
        self,
        recipe: NetRecipe,
        card: Card,
        teacher: Teacher,
        shards: Path,
        folder: Path,
        device: torch.device,
        start: Net | None = None,
    ) -> None:
        """`start`: the weights to begin with, unless there is a checkpoint; its zeros stay if the recipe prunes."""
        self.recipe, self._teacher, self._shards, self.folder = recipe, teacher, shards, folder
        self.module = FeedForward(card, recipe.seed).to(device)
        if start is not None:
            self.module.take(start.tensors)
        self._adam = torch.optim.Adam(self.module.parameters(), lr=recipe.rate, fused=True)
        self.place = Position(recipe=as_dict(recipe))
        folder.mkdir(parents=True, exist_ok=True)
        self._checkpoint = folder / "checkpoint.safetensors"
        if self._checkpoint.exists():
            self.place = checkpoint.load(self._checkpoint, self.module, self._adam, self.place.recipe)
        weights = [parameter for name, parameter in self.module.named_parameters() if name.endswith(".weight")]
        self._masks = [(weight, weight != 0) for weight in weights if recipe.kept or recipe.kept_blocks]
        held_out = Pool.of([shards / f"{HELD_OUT}.safetensors"])
        self._held_out = held_out, np.sort(order(len(held_out), 0, 0)[:HELD_OUT_FRAMES])
        # Asked once and now: later the teacher is busy with the next batch.
        self._expected = teacher.scores(*self._held_out)

    @property
    def finished(self) -> bool:
        return self.place.frames >= self.recipe.frames

    def run(self, stopping: Callable[[], bool], progress: Progress) -> None:
        """Train until the budget is used up or `stopping()`; either way a checkpoint is left."""
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as log:
            while not self.finished and not stopping():
                self._epoch(stopping, progress, log)
        self._save()

    def _epoch(self, stopping: Callable[[], bool], progress: Progress, log: TextIO) -> None:
        place, batch = self.place, self.recipe.batch
        ready = data.shards(self._shards)
        if place.at == 0:
            place.shards = len(ready)
        if not ready or len(ready) < place.shards:
            raise CorpusError(
                f"{self._shards} holds {len(ready)} shards of training data and "
                f"{max(place.shards, 1)} are needed; `prepare` makes them."
            )
        pool = Pool.of(ready[: place.shards])
        run = RUN if self.recipe.heads > 1 else 1
        taken = order(len(pool), self.recipe.seed, place.epoch, run)
        if self.recipe.hard:
            self._take_labels(ready[: place.shards])
        losses: list[float] = []
        last, saved = time.monotonic(), time.monotonic()
        reported, self._reported_s = place.frames, place.seconds
        for lesson in self._lessons(pool, taken):
            if self.finished or stopping():
                break
            losses.append(self._step(lesson))
            place.at += batch
            now = time.monotonic()
            place.seconds, last = place.seconds + now - last, now
            progress(
                f"{self.recipe.name}: epoch {place.epoch}, divergence {losses[-1]:.3f}",
                place.frames / self.recipe.frames,
            )
            if place.frames - reported >= REPORT_FRAMES or self.finished:
                self._report(losses, place.frames - reported, log, progress)
                losses, reported, last = [], place.frames, time.monotonic()
            if now - saved > CHECKPOINT_S:
                self._save()
                saved = last = time.monotonic()
        if place.at + batch > len(pool):
            place.epoch, place.at = place.epoch + 1, 0

    def _lessons(self, pool: Pool, taken: Array) -> Iterator[Lesson]:
        """The batches of the epoch from where it stands, each made while the one before is learnt."""
        batch = self.recipe.batch
        with ThreadPoolExecutor(1) as ahead:
            waiting = None
            for first in range(self.place.at, len(pool) - batch + 1, batch):
                made = ahead.submit(self._lesson, pool, taken[first : first + batch])
                if waiting is not None:
                    yield waiting.result()
                waiting = made
            if waiting is not None:
                yield waiting.result()

    def _lesson(self, pool: Pool, at: Array) -> Lesson:
        heard = self._student_input(pool, at)
        asked = np.stack([pool.later(at, head) for head in range(self.recipe.heads)])
        if self.recipe.hard:
            return Lesson(heard, list(torch.from_numpy(self._labels[asked].astype(np.int64))))
        once, where = np.unique(asked, return_inverse=True)
        scores = self._teacher.scores(pool, once)
        rows = torch.from_numpy(where.reshape(asked.shape)).to(scores.device)
        return Lesson(heard, [scores[row] for row in rows])

    def _step(self, lesson: Lesson) -> float:
        recipe, place = self.recipe, self.place
        for group in self._adam.param_groups:
            group["lr"] = recipe.rate * self._rate()
        answers = self.module.answers(lesson.heard)
        total = torch.zeros(())
        for answer, wanted in zip(answers, lesson.wanted, strict=True):
            there = wanted.to(answer.device)
            if recipe.hard:
                even = answer + self._log_prior
                part = torch.nn.functional.cross_entropy(even, there, ignore_index=labels.UNLABELLED)
            else:
                # Times T the gradient for the logits is of the same size at every temperature.
                part = divergence(answer, there, recipe.temperature) * recipe.temperature
            total = total + part
        total.backward()
        self._adam.step()
        for parameter, mask in self._masks:
            parameter.data.mul_(mask)
        self._adam.zero_grad(set_to_none=True)
        place.step, place.frames = place.step + 1, place.frames + len(lesson.heard)
        return float(total.detach()) / len(answers) / (1 if recipe.hard else recipe.temperature)

    def _take_labels(self, shards: Sequence[Path]) -> None:
        """Labels of the epoch's frames, and their prior, which is added to the logits that they are compared with.

        So it is not learnt: what comes out are posteriors under an even prior, as from a teacher.
        """
        self._labels = labels.read(shards)
        labelled = self._labels[self._labels != labels.UNLABELLED]
        counts = np.bincount(labelled, minlength=self.module.card.senones) + 1.0
        self._log_prior = torch.from_numpy(np.log(counts / counts.sum()).astype(np.float32)).to(self.module.mean.device)

    def _student_input(self, pool: Pool, at: Array) -> torch.Tensor:
        card = self.module.card
        return torch.from_numpy(pool.student_input(at, card.left, card.right))

    def _rate(self) -> float:
        done = (self.place.frames + self.recipe.batch) / self.recipe.frames
        return max(min(done / self.recipe.warm_up, (1 - done) / (1 - self.recipe.warm_up)), 1e-3)

    def _report(self, losses: list[float], frames: int, log: TextIO, progress: Progress) -> None:
        """A line of the log: `loss` is what is minimised, over the `frames` since the last report, nats.

        `held_out`, `same_best`: of `validate`; `shards`: of the data that the epoch goes over.
        """
        place = self.place
        held_out, same_best = self.validate()
        report = {
            "frames": place.frames,
            "epoch": place.epoch,
            "loss": float(np.mean(losses)),
            "held_out": held_out,
            "same_best": same_best,
            "rate": self.recipe.rate * self._rate(),
            "seconds": round(place.seconds, 1),
            "frames_per_s": round(frames / (place.seconds - self._reported_s), 1),
            "shards": place.shards,
        }
        self._reported_s = place.seconds
        log.write(json.dumps(report) + "\n")
        log.flush()
        progress(
            f"{self.recipe.name}: held out, divergence {held_out:.4f}, same best {same_best:.3f}",
            place.frames / self.recipe.frames,
        )

    @torch.no_grad()
    def validate(self) -> tuple[float, float]:
        """Divergence from the teacher on held-out frames at the recipe's temperature; share of equal bests."""
        pool, chosen = self._held_out
        total, same = 0.0, 0
        for first in range(0, len(chosen), VALIDATION_BATCH):
            at = chosen[first : first + VALIDATION_BATCH]
            answer = self.module.answers(self._student_input(pool, at))[0]
            scores = self._expected[first : first + len(at)].to(answer.device)
            total += float(divergence(answer, scores, self.recipe.temperature)) * len(at)
            same += int((answer.argmax(1) == scores.argmax(1)).sum())
        return total / len(chosen), same / len(chosen)

    def _save(self) -> None:
        if self.place.step:
            checkpoint.save(self._checkpoint, self.module, self._adam, self.place)
