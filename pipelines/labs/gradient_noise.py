"""Lab `gradient-noise`: how the noise of a minibatch's gradient falls with its size.

The gradient is that of this project's own training: the shipped net `small` taught by `base` on the posteriors of
frames of speech (Li et al. 2014), of the weights of its output layer. Of a minibatch with counts w of the frames it
is Σ wᵢ dᵢ hᵢᵀ / b, dᵢ = pᵢ − qᵢ the error of the outputs and hᵢ the last hidden layer. So its distance from the mean
gradient follows exactly from the matrix K = (D Dᵀ) ∘ (H Hᵀ) of the frames, without a gradient ever being formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.labs.chart import Axis, Chart, Line, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters, PublishedValue, setting
from pipelines.labs.desk import Desk
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, Verdict
from profiler.analysis.comparison.statistics import bootstrap_interval
from profiler.arrays import F32, F64
from profiler.errors import BadInput

if TYPE_CHECKING:
    from pipelines.models.nets import Net

SLOPE, WITHIN = -0.5, 0.05
"""The note: the standard deviation of the gradient falls as b^−½; a slope counts as that within so much."""

LEAST_FRAMES: Final = 64
MIDDLE: Final = 64
"""At this size of a minibatch frames in order are held against frames drawn at random: two thirds of a second."""

ONE_EACH = 8 * 16  # The note: with one image on each of 8 GPUs in 16 servers, a step has a minibatch of 128 already


class Params(Parameters, frozen=True, kw_only=True):
    frames: Annotated[int, setting("Frames", "Of speech, to draw minibatches from.", ge=LEAST_FRAMES, le=8192)] = 2048
    largest: Annotated[int, setting("Largest minibatch", "Sizes go in powers of two up to it.", ge=8, le=65536)] = 1024
    draws: Annotated[int, setting("Draws", "Minibatches that are drawn of each size.", ge=8, le=10000)] = 400


class GradientNoiseResult(Measured, frozen=True, kw_only=True):
    """Relative distance of a minibatch's gradient from the mean one, by size and draw: at random, or in a row."""

    frames: int
    sizes: list[int]
    drawn: list[list[float]]
    running: list[list[float]]


def measure(params: Params, desk: Desk) -> GradientNoiseResult:
    desk.progress("hearing frames through two nets", 0.0)
    errors, hidden = errors_and_inputs(params.frames, desk)
    kernel = alike(errors, hidden)
    steps = [1 << k for k in range(17) if 1 << k <= params.largest]
    draw = np.random.default_rng(0)
    drawn, running = [], []
    for place, size in enumerate(steps):
        desk.progress(f"minibatches of {size}", 0.3 + 0.7 * place / len(steps))
        with desk.span(f"minibatches of {size}"):
            drawn.append(distances(kernel, size, params.draws, draw).tolist())
            running.append(distances(kernel, size, params.draws, draw, running=True).tolist())
    return GradientNoiseResult(frames=len(errors), sizes=steps, drawn=drawn, running=running)


def errors_and_inputs(count: int, desk: Desk) -> tuple[F32, F32]:
    """Return output errors [frames, senones] and the last hidden layer [frames, width] of up to `count` frames."""
    from pipelines.audio import loading
    from pipelines.config import Config
    from pipelines.frontend.mfcc import Mfcc
    from pipelines.models import nets, opening

    front_end = Mfcc(opening.open_model(Config()).feat_params)
    pupil, teacher = (nets.load(nets.find(name)) for name in ("small", "base"))
    parts: list[F32] = []
    for item in desk.speech():
        desk.check()
        parts.append(front_end.features(loading.load(item.path, item.part).samples))
        if sum(map(len, parts)) >= count:
            break
    features = np.concatenate(parts)[:count] if parts else np.empty((0, 1), np.float32)
    if len(features) < LEAST_FRAMES:
        raise BadInput(f"The speech has {len(features)} frames; minibatches are drawn from {LEAST_FRAMES} at least.")
    with desk.span("two nets"):
        taught, hidden = through(pupil, features)
        right, _ = through(teacher, features)
    return taught - right, hidden


def through(net: Net, features: F32) -> tuple[F32, F32]:
    """Posteriors [frames, senones] of a net, and its last hidden layer [frames, width]."""
    card = net.card
    padded = np.pad(features, ((card.left, card.right), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, card.left + 1 + card.right, axis=0).swapaxes(1, 2)
    x: F32 = np.ascontiguousarray(windows.reshape(len(features), -1), np.float32)
    for weight, bias, relu in net.matrices():
        x = x @ weight.T + bias
        x = np.maximum(x, 0.0) if relu else x
    weight, bias = net.head(0)
    scores = x @ weight.T + bias
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    return scores / scores.sum(axis=1, keepdims=True), x


def alike(errors: F32, hidden: F32) -> F64:
    """K [frames, frames]: the inner products of the gradients of single frames."""
    found: F64 = (errors @ errors.T).astype(np.float64) * (hidden @ hidden.T)
    return found


def distances(kernel: F64, size: int, draws: int, draw: np.random.Generator, running: bool = False) -> F64:
    """Distance of the gradients of `draws` minibatches from the mean one, over the length of the latter [draws]."""
    n = len(kernel)
    weights = np.zeros((draws, n))
    frames = draw.integers(0, n, (draws, 1 if running else size))
    if running:
        frames = (frames + np.arange(size)) % n
    np.add.at(weights, (np.arange(draws)[:, None], frames), 1.0 / size)
    weights -= 1.0 / n
    squares = np.einsum("ij,ij->i", weights @ kernel, weights)
    mean = float(kernel.sum()) / n**2
    return np.asarray(np.sqrt(np.maximum(squares, 0.0) / mean))


def slope(sizes: list[int], noise: list[list[float]]) -> tuple[float, float, float]:
    """Slope of the log of the noise over that of the size by least squares, with its interval over the draws."""
    x = np.log(np.array(sizes, np.float64))
    x -= x.mean()
    by_draw = np.array(noise).T  # [draws, sizes]

    def fitted(rows: F64) -> float:
        y = 0.5 * np.log((rows**2).mean(axis=0))
        return float((x * y).sum() / (x * x).sum())

    low, high = bootstrap_interval(by_draw, fitted, method="percentile", resamples=400)
    return fitted(by_draw), low, high


def judge(result: GradientNoiseResult) -> Finding:
    value, low, high = slope(result.sizes, result.drawn)
    place = next((i for i, size in enumerate(result.sizes) if size >= MIDDLE), -1)
    in_order = rms(result.running[place]) / rms(result.drawn[place])
    verdict: Verdict = UNDECIDED
    if low >= SLOPE - WITHIN and high <= SLOPE + WITHIN:
        verdict = HOLDS
    elif low > SLOPE + WITHIN or high < SLOPE - WITHIN:
        verdict = FAILS
    one = rms(result.drawn[0])
    why = (
        f"With frames drawn at random the noise falls as b to the {value:.3f} ({low:.3f} to {high:.3f}); one "
        f"frame has {one:.3g} times the mean gradient as noise. Of frames taken in order, {result.sizes[place]} have "
        f"{in_order:.2g} times the noise of as many drawn at random."
    )
    figures: dict[str, float | None] = {
        "slope": value,
        "noise_in_order_over_at_random": in_order,
        "noise_of_one_frame_over_gradient": one,
        "noise_of_the_largest_over_gradient": rms(result.drawn[-1]),
    }
    return Finding(verdict, why, figures)


def rms(values: Sequence[float] | F64) -> float:
    return float(np.sqrt(np.square(values).mean()))


def picture(result: GradientNoiseResult) -> Chart:
    x = tuple(float(size) for size in result.sizes)
    lines = []
    for name, noise in (("drawn at random", result.drawn), ("in order", result.running)):
        intervals = [bootstrap_interval(np.array(each), rms, method="percentile", resamples=80) for each in noise]
        low, high = zip(*intervals, strict=True)
        lines.append(Line(name, x, tuple(map(rms, noise)), low, high))
    law = Line("b^−½", x, tuple(rms(result.drawn[0]) * b**SLOPE for b in x), dashed=True)
    marks = [Mark("one each on 8 × 16 GPUs", ONE_EACH, on="x")] if x[-1] >= ONE_EACH else []
    noise_of = Axis("noise of the gradient / its length", log=True)
    return Chart(Axis("frames in a minibatch", log=True), noise_of, (*lines, law, *marks))


LAB = Lab(
    claim="The noise of a minibatch's gradient falls as the root of its size.",
    source="note 3 (Dive into Deep Learning, § 12.5)",
    group="caches",
    measured="The distance of a minibatch's gradient from the mean gradient of all frames, for the output layer "
    "of the net `small` taught by `base`, over frames of the shipped voices; minibatches of 1 to 1 024 frames, "
    "drawn at random and taken in order. It is computed exactly; nothing is timed.",
    bound="It holds if the slope lies within 0.05 of the claim's −½, with its interval. The width is ours: over "
    "a thousandfold of sizes it is a factor of 1.4.",
    steps=(measure, judge, picture),
    follows={
        "holds here": "So: four times the minibatch halves the noise for four times the work; and shuffle the frames, "
        "for those that follow each other say the same.",
        "does not hold here": "So: the frames of a minibatch are not independent; shuffle them over more speech.",
        "undecided": "So: draw more minibatches (--set draws=4000).",
    },
    published=(PublishedValue("slope over log b", SLOPE, "", "slope"),),
    # Posteriors of two nets and their difference, K twice, and the weights of the draws.
    bytes_needed=lambda s: 3 * 4 * 5126 * s.frames + 16 * s.frames**2 + 16 * s.draws * s.frames,
)
