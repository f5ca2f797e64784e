"""Lab `compress-training`: nets made smaller and trained on, and a small one taught by a large one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np

from pipelines.labs import _training as shared
from pipelines.labs.chart import Axis, Bars, Chart, Line, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters, PublishedValue, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import SHARE, ci, format_integer, quotient
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_most
from pipelines.training.parallel.job import SEGMENT
from profiler.arrays import Array

if TYPE_CHECKING:
    from pipelines.training.module import FeedForward
    from pipelines.training.recipes import NetRecipe

WAYS = {
    "low-rank": "low rank, 30 % of the size",
    "sparse": "sparse, 30 % of the weights",
    "small": "small, taught by large",
    "small-hard": "small, hard labels",
}
"""Recipes of `pipelines.training` that are tried; the first two begin from the net `base`."""
POINTS = 6


class Params(Parameters, frozen=True, kw_only=True):
    frames: Annotated[
        int, setting("Frames", "Frames that each net is trained on.", unit="frames", ge=1024, le=100_000_000)
    ] = 100_000
    threads: Annotated[int, setting("Threads", "Threads that torch computes on.", ge=1, le=64)] = 1


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """The course of a net over frames and seconds of training; the first point is before any.

    `apart`: at each point, its divergence from the mixtures by segment of the held-out utterances, nats. `wrong`: by
    segment at the end, the share of frames whose best senone is not the aligned one. `weights`: other than zero.
    """

    name: str
    weights: int
    frames: list[int] = []
    seconds: list[float] = []
    apart: list[list[float]] = []
    wrong: list[float] = []

    @property
    def divergences(self) -> list[float]:
        return [float(np.mean(each)) for each in self.apart]


class CompressTrainingResult(Measured, frozen=True, kw_only=True):
    """The net `base` as it is shipped (one point), then each way. `below`: share of its weights below 0.1."""

    base: Course
    courses: list[Course]
    below: float


class _Exam:
    """The held-out utterances, with what the mixtures and the alignment say of them."""

    def __init__(self, folder: Path) -> None:
        from pipelines.models import sphinx
        from pipelines.training.corpus import labels
        from pipelines.training.corpus.data import HELD_OUT, Pool
        from pipelines.training.train import Mixtures

        path = folder / f"{HELD_OUT}.safetensors"
        self._pool = Pool.of([path])
        self._at = np.arange(len(self._pool))
        self._labels = labels.read([path]).astype(np.int64)
        self.teacher = Mixtures(sphinx.load(sphinx.default_directory()))
        self._expected = self.teacher.scores(self._pool, self._at)

    def taken(self, module: FeedForward, temperature: float) -> tuple[list[float], list[float]]:
        """Divergence and share of wrong senones, by segment."""
        import torch

        from pipelines.training.module import divergence

        card, apart, wrong = module.card, [], []
        with torch.no_grad():
            for first in range(0, len(self._at), SEGMENT):
                part = slice(first, first + SEGMENT)
                heard = self._pool.student_input(self._at[part], card.left, card.right)
                said = module.answers(torch.from_numpy(heard))[0]
                apart.append(float(divergence(said, self._expected[part], temperature)))
                right = said.argmax(1).numpy() == self._labels[part]
                wrong.append(float(1 - right.mean()))
        return apart, wrong


def measure(params: Params, desk: Desk) -> CompressTrainingResult:
    import torch

    from pipelines.models import nets
    from pipelines.training import recipes
    from pipelines.training.module import FeedForward

    torch.set_num_threads(params.threads)
    with desk.part(0.0, 0.2):
        folder = shared.data(desk)
        exam = _Exam(folder)
    base = nets.load(nets.find("base"))
    module = FeedForward(base.card)
    module.take(base.tensors)
    apart, wrong = exam.taken(module, recipes.find("base").temperature)
    whole = Course(name="base", weights=_weights(base.tensors), frames=[0], seconds=[0.0], apart=[apart], wrong=wrong)
    courses = []
    for place, name in enumerate(WAYS):
        recipe = replace(recipes.find(name), frames=params.frames)
        with desk.part(0.2 + 0.2 * place, 0.4 + 0.2 * place):
            courses.append(_course(desk, recipe, exam, folder))
    every = np.concatenate([v.ravel() for k, v in base.tensors.items() if k.endswith("weight")])
    return CompressTrainingResult(base=whole, courses=courses, below=float((np.abs(every) < 0.1).mean()))


def _course(desk: Desk, recipe: NetRecipe, exam: _Exam, data: Path) -> Course:
    import torch

    from pipelines.training.train import begin

    points: list[tuple[int, float, list[float], list[float]]] = []
    with tempfile.TemporaryDirectory(prefix="asrscope-net-") as folder:
        trainer = begin(recipe, data, torch.device("cpu"), Path(folder), exam.teacher)
        for target in np.linspace(0, recipe.frames, POINTS + 1):

            def there(target: float = target) -> bool:
                desk.check()
                return trainer.place.frames >= target

            if target:
                desk.once(f"train {recipe.name}", partial(trainer.run, there, desk.progress))
            place = trainer.place
            points.append((place.frames, place.seconds, *exam.taken(trainer.module, recipe.temperature)))
    frames, seconds, apart, wrong = zip(*points, strict=True)
    return Course(
        name=recipe.name,
        weights=_weights(trainer.module.tensors()),
        frames=list(frames),
        seconds=list(seconds),
        apart=list(apart),
        wrong=wrong[-1],
    )


def _weights(tensors: Mapping[str, Array]) -> int:
    return sum(int(np.count_nonzero(value)) for value in tensors.values())


def judge(result: CompressTrainingResult) -> Finding:
    low_rank, sparse, small, hard = result.courses
    base = result.base
    errors = {c.name: quotient(c.wrong, base.wrong) for c in (low_rank, sparse)}
    taught = quotient(small.wrong, hard.wrong)
    verdict = all_of(*(at_most(ratio, shared.NO_LOSS) for ratio in errors.values()), at_most(taught, 1.0))

    def apart(course: Course) -> str:
        return f"{course.divergences[0]:.2g} nat before and {course.divergences[-1]:.2g} after training"

    why = (
        f"After {format_integer(low_rank.frames[-1])} frames of training, base at 30 % of its size by low rank makes "
        f"{ci(errors['low-rank'])} times its frame errors ({apart(low_rank)} from the teacher, base "
        f"{base.divergences[-1]:.2g}), with 30 % of its weights {ci(errors['sparse'])} times ({apart(sparse)}); a "
        f"small net taught by a large one makes {ci(taught)} times the errors of one taught by labels."
    )
    figures: dict[str, float | None] = {
        "low_rank_over_base_errors": errors["low-rank"].ratio,
        "sparse_over_base_errors": errors["sparse"].ratio,
        "taught_over_hard_errors": taught.ratio,
        "base_errors_share": float(np.mean(base.wrong)),
        "base_divergence_nats": base.divergences[-1],
        "low_rank_divergence_before_nats": low_rank.divergences[0],
        "low_rank_divergence_after_nats": low_rank.divergences[-1],
        "sparse_divergence_before_nats": sparse.divergences[0],
        "sparse_divergence_after_nats": sparse.divergences[-1],
        "size_low_rank_share": low_rank.weights / base.weights,
        "size_sparse_share": sparse.weights / base.weights,
        "weights_below_0_1_share": result.below,
    }
    return Finding(verdict, why, figures)


def picture(result: CompressTrainingResult) -> Chart:
    apart = Axis("divergence from the mixtures", "nat", low=0.0)
    whole = Mark("base, whole", result.base.divergences[-1])
    by_frames, by_time = [], []
    for course in result.courses:
        name, y = WAYS[course.name], tuple(course.divergences)
        by_frames.append(Line(name, tuple(map(float, course.frames)), y))
        by_time.append(Line(name, tuple(course.seconds), y))
    nets = [result.base, *result.courses]
    in_the_end = Chart(
        Axis("net", categories=tuple(course.name for course in nets)),
        Axis("frames with another best senone", "%", low=0.0),
        (Bars("errors", tuple(100 * float(np.mean(course.wrong)) for course in nets)),),
        title="In the end",
    )
    return Chart(
        Axis("frames of training"),
        apart,
        (*by_frames, whole),
        title="By frames",
        beside=(Chart(Axis("training", "s"), apart, (*by_time, whole), title="By time"), in_the_end),
    )


LAB = Lab(
    claim="A net may lose 70 % of its size, by low rank or by its smallest weights, for practically nothing, "
    "if it is trained on; and a small net learns more from a large one than from labels.",
    source="note 1 (Xue 2013, Yu 2012, Li 2014)",
    group="training",
    measured="The recipes of the shipped nets with a small budget, on the shipped voices: `base` cut to 30 % and "
    "retrained, and a small net trained from scratch by each teacher. Measured are the divergence from the mixtures "
    "and the frame errors on held-out sentences. The cards of the nets have the word errors after the full budget.",
    bound="It holds if retrained nets make at most a twentieth more frame errors than the whole net, and a "
    "taught net fewer than one trained on labels. Published is no loss at a fifth of the size (Xue 2013) and "
    "with a third of the weights (Yu 2012); the twentieth is ours, as training takes minutes here and not days.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: cut, train on for a few minutes, and ship the small one; let a large net teach the smallest.",
        FAILS: "So: cutting without enough training costs score; look at the curves, and give the tuning more "
        "frames of more speech before you call the small net as good.",
        UNDECIDED: "So: train on more frames (--set frames=1000000), and look at words, too: see teacher-student.",
    },
    published=(
        PublishedValue("share of the weights below 0.1", 0.7, SHARE, "weights_below_0_1_share"),
        PublishedValue("size that costs practically nothing", 0.3, SHARE, "size_low_rank_share"),
    ),
    # The largest teacher and pupil with Adam's two averages, and the teacher's scores of all held-out frames.
    bytes_needed=lambda _: shared.PROCESS_BYTES + (1 << 29),
)
