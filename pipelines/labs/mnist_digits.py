"""Lab `mnist-digits`: training on digits, on the processor and on the device, and where the time goes.

Digits of MNIST's shape are drawn here: glyphs of 5 × 7 dots, enlarged, turned, sheared and moved by chance, with noise.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import numpy as np

from pipelines.labs.chart import Axis, Bars, Chart, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters, PublishedValue, setting
from pipelines.labs.desk import HALF, Desk
from pipelines.labs.figures import Ratio, ci, format_integer, percent, ratio, ratio_columns, seconds, value
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, UNDECIDED, Finding, all_of, at_least
from profiler.arrays import F32, I64

if TYPE_CHECKING:
    from torch import nn

SIDE: Final = 28
GLYPHS: Final = (
    "01110100011001110101110011000101110",
    "00100011000010000100001000010001110",
    "01110100010000100010001000100011111",
    "11111000100010000010000011000101110",
    "00010001100101010010111110001000010",
    "11111100001111000001000011000101110",
    "00110010001000011110100011000101110",
    "11111000010001000100010000100001000",
    "01110100011000101110100011000101110",
    "01110100011000101111000010001001100",
)
"""Rows of dots from the top (the HD44780's character table)."""
TURN, SHEAR, MOVE, SCALE = 0.3, 0.25, 2.5, (2.4, 3.4)  # Radians, share, pixels, pixels per dot: by chance up to these
NOISE = 0.08


def drawn(count: int, seed: int) -> tuple[F32, I64]:
    """`count` digits f32 [count, 28, 28] in 0…1 and their classes i64 [count]."""
    draw = np.random.default_rng(seed)
    glyphs = np.array([[int(dot) for dot in glyph] for glyph in GLYPHS], np.float32).reshape(-1, 7, 5)
    classes = draw.integers(0, 10, count)
    images = np.empty((count, SIDE, SIDE), np.float32)
    rows, columns = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    for first in range(0, count, 4096):
        part = slice(first, min(first + 4096, count))
        each = part.stop - part.start, 1, 1
        angle, shear = draw.uniform(-TURN, TURN, each), draw.uniform(-SHEAR, SHEAR, each)
        scale = draw.uniform(*SCALE, each)
        down, right = draw.uniform(-MOVE, MOVE, (2, *each))
        c, s, y, x = np.cos(angle), np.sin(angle), rows - down, columns - right
        v = (c * y - s * x) / scale + 3
        u = (s * y + c * x) / scale + shear * (v - 3) + 2
        images[part] = _between_dots(glyphs[classes[part]], v, u)
    images += draw.normal(0, NOISE, images.shape).astype(np.float32)
    return np.clip(images, 0, 1), classes


def _between_dots(glyphs: F32, v: F32, u: F32) -> F32:
    """Grey at rows `v` and columns `u` of dots [n, 28, 28], linear between dots; nothing outside."""
    n = np.arange(len(glyphs))[:, None, None]
    edged = np.pad(glyphs, ((0, 0), (1, 2), (1, 2)))
    v, u = np.clip(v + 1, 0, 8), np.clip(u + 1, 0, 6)
    i, j = v.astype(int), u.astype(int)
    down, right = v - i, u - j
    above = edged[n, i, j] * (1 - right) + edged[n, i, j + 1] * right
    below = edged[n, i + 1, j] * (1 - right) + edged[n, i + 1, j + 1] * right
    return np.asarray(above * (1 - down) + below * down)


MODELS = {"small": 16, "large": 128}  # Channels of the first of two convolutions; the second has twice as many
BATCH = 64
RATE = 0.05
PARTS = {"loader": "loading", "there": "copying there", "computing": "computing", "back": "copying back"}
GROUPS = ("overhead", "transfer", "scoring", "transfer")  # Of the stages of PARTS
SAID_CPU_S, SAID_GPU_S = 153.0, 83.0
TEST = 1000


class Params(Parameters, frozen=True, kw_only=True):
    digits: Annotated[int, setting("Digits", "Of a pass, one a round for each model.", ge=640, le=60_000)] = 1920
    rounds: Annotated[int, setting("Rounds", "Passes of each model on each device.", ge=3, le=100)] = 5
    threads: Annotated[int, setting("Threads", "Threads that torch computes on.", ge=1, le=64)] = 1


class Passes(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one device: seconds of each pass, its parts in each pass, and how many test digits were right."""

    seconds: list[float]
    parts: dict[str, list[float]]
    right: float


class MnistDigitsResult(Measured, frozen=True, kw_only=True):
    """By model, on the processor; `there`: on the accelerator `device`, empty without one."""

    digits: int
    device: str
    weights: dict[str, int]
    here: dict[str, Passes]
    there: dict[str, Passes]


def model(channels: int) -> nn.Module:
    """Two convolutions with pooling and two affine layers, as in torch's example of MNIST."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, channels, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * channels * 25, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def measure(params: Params, desk: Desk) -> MnistDigitsResult:
    import torch

    from pipelines.run.interleave import turns

    desk.progress("drawing digits", None)
    taught, test = drawn(params.digits, 1), drawn(TEST, 2)
    places = ["cpu"] + ([desk.device] if desk.device else [])
    courses = {}
    for place in places:
        for name, channels in MODELS.items():
            torch.manual_seed(1)
            courses[place, name] = _Course(model(channels).to(place), place, taught)
    keys = list(courses)
    for turn in turns(len(keys), 1, range(-1, params.rounds)):
        place, name = keys[turn.arm]
        done = (turn.round + 1) / (params.rounds + 1)
        desk.progress(f"training the {name} model on {place}", done)
        courses[place, name].run(desk, name, kept=turn.round >= 0)
    found = {place: {name: courses[place, name].passes(test) for name in MODELS} for place in places}
    return MnistDigitsResult(
        digits=params.digits,
        device=desk.device or "",
        weights={name: sum(p.numel() for p in courses["cpu", name].net.parameters()) for name in MODELS},
        here=found["cpu"],
        there=found.get(desk.device or "", {}),
    )


class _Course:
    """A model on its way on a device, with its passes so far."""

    def __init__(self, net: nn.Module, place: str, taught: tuple[F32, I64]) -> None:
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        self.net, self._place = net, place
        data = TensorDataset(*(torch.from_numpy(values) for values in taught))
        # As the note's example loads: digit by digit in Python, put together to a batch.
        self._loader = DataLoader(data, BATCH, shuffle=True, generator=torch.Generator().manual_seed(1), drop_last=True)
        self._steps = torch.optim.SGD(net.parameters(), RATE, momentum=0.9)
        self._seconds: list[float] = []
        self._parts: dict[str, list[float]] = {part: [] for part in PARTS}

    def run(self, desk: Desk, name: str, kept: bool) -> None:
        """One pass; each part waited for, so that none is billed to the next."""
        import torch

        parts = zip(PARTS.values(), GROUPS, strict=True)
        stages = [desk.stage(f"{part}, {name} on {self._place}", group) for part, group in parts]
        spent = [0] * len(PARTS)
        clock, wait = desk.recorder.clock, self._wait
        batches = iter(self._loader)
        begin = clock()
        while True:
            desk.check()
            with desk.step() as number:
                times = [clock()]
                batch = next(batches, None)
                times.append(clock())
                if batch is not None:
                    x, y = (value.to(self._place) for value in batch)
                    wait()
                    times.append(clock())
                    loss = torch.nn.functional.cross_entropy(self.net(x[:, None]), y)
                    self._steps.zero_grad()
                    torch.autograd.backward(loss)
                    self._steps.step()
                    wait()
                    times.append(clock())
                    float(loss.detach())
                    times.append(clock())
                for place, (start, end) in enumerate(pairwise(times)):
                    desk.lane.put(stages[place], start, end, number, 1)
                    spent[place] += end - start
            if batch is None:
                break
        if kept:
            self._seconds.append((clock() - begin) / 1e9)
            for part, ns in zip(PARTS, spent, strict=True):
                self._parts[part].append(ns / 1e9)

    def _wait(self) -> None:
        if self._place != "cpu":
            import torch

            torch.accelerator.synchronize()

    def passes(self, test: tuple[F32, I64]) -> Passes:
        """Return the timings, with the share of `test` that is recognised."""
        import torch

        with torch.no_grad():
            classes = self.net(torch.from_numpy(test[0])[:, None].to(self._place)).argmax(1).cpu()
        return Passes(seconds=self._seconds, parts=self._parts, right=float((classes.numpy() == test[1]).mean()))


def most(passes: Passes) -> float:
    """The gain of a device that computes in no time."""
    whole = seconds(passes.seconds)
    return whole / max(whole - seconds(passes.parts["computing"]), 1e-12)


def gains_of(result: MnistDigitsResult) -> dict[str, Ratio | None]:
    return {name: ratio(result.here[name].seconds, passes.seconds) for name, passes in result.there.items()}


def judge(result: MnistDigitsResult) -> Finding:
    small, large = (result.here[name] for name in MODELS)
    bounds = most(small), most(large)
    loading = {n: seconds(p.parts["loader"]) / seconds(p.seconds) for n, p in result.here.items()}
    figures: dict[str, float | None] = {
        "gain_small": None,
        "gain_large": None,
        "most_gain_small": bounds[0],
        "most_gain_large": bounds[1],
        "loader_share_small": loading["small"],
        "loader_share_large": loading["large"],
        "cpu_s_per_pass_of_60000_small": 60_000 / result.digits * seconds(small.seconds),
        "digits_right_share": small.right,
    }
    if not result.there:
        why = (
            f"{HALF}: loading is {percent(loading['small'], 1)} of the small model's pass and "
            f"{percent(loading['large'], 1)} of the large one's, so that a device that computed in no time could gain "
            f"{bounds[0]:.3g} and {bounds[1]:.3g} times at most; {percent(small.right)} of {format_integer(TEST)} new "
            "digits are recognised."
        )
        return Finding(IMPOSSIBLE, why, figures)
    gains = gains_of(result)
    # Gains are no times; their inverses, round by round, behave as such.
    inverses = (np.divide(result.there[n].seconds, result.here[n].seconds).tolist() for n in MODELS)
    verdict = all_of(at_least(gains["small"], 1.0), at_least(ratio(*inverses), 1.0))
    why = (
        f"{result.device} trains the small model {ci(gains['small'])} times as fast and the large one "
        f"{ci(gains['large'])} times; loading, which stays on the processor, is {percent(loading['small'], 1)} and "
        f"{percent(loading['large'], 1)} of the processor's passes."
    )
    figures |= {f"gain_{name}": value(gain) for name, gain in gains.items()}
    return Finding(verdict, why, figures)


def picture(result: MnistDigitsResult) -> Chart:
    places = [("processor", result.here)] + ([(result.device, result.there)] if result.there else [])
    columns = [(f"{name}, {place}", each[name]) for name in MODELS for place, each in places]
    parts = tuple(
        Bars(title, tuple(seconds(passes.parts[part]) for _, passes in columns), stacked=True)
        for part, title in PARTS.items()
    )
    bars = Bars("the most there could be", tuple(most(result.here[name]) for name in MODELS))
    if result.there:
        bars = Bars("measured", *ratio_columns([*gains_of(result).values()]))
    gains = Chart(
        Axis("model", categories=tuple(MODELS)),
        Axis("gain of a device", "×", low=0.0),
        (bars, Mark("claimed", SAID_CPU_S / SAID_GPU_S)),
        title="What a device gains",
    )
    models = Axis("model and device", categories=tuple(name for name, _ in columns))
    return Chart(models, Axis("a pass", "s"), parts, title=f"{format_integer(result.digits)} digits", beside=(gains,))


LAB = Lab(
    claim="Training on MNIST takes 153 s on the processor and 83 s on the GPU, and larger models gain more.",
    source="note 2",
    group="device",
    wants_device=True,
    measured="Digits in the format of MNIST, drawn here, with a small and a large convolutional net. The time of "
    "a pass is split into loading (digit by digit in Python, as in the claim's example), copying to the device, "
    "computing, and copying the loss back. The claim's 10 epochs of 60 000 are not repeated; the split says "
    "where their time goes.",
    bound="It holds if the device is faster with the small model and gains more with the large one, as the claim "
    "says. The claim's factor of 1.84 belongs to its own devices.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: a device shortens only what it computes; make loading cheap first, then larger models pay.",
        FAILS: "So: the model is too small for this device: its steps are launches, and loading stays as it was.",
        IMPOSSIBLE: "So: look at the loader's share before you buy a device: what is left of a pass without "
        "computing is what you will wait for.",
        UNDECIDED: "So: give it more rounds (--set rounds=20).",
    },
    published=(PublishedValue("gain of the GPU", SAID_CPU_S / SAID_GPU_S, "×", "gain_small"),),
    bytes_needed=lambda params: (512 << 20) + params.digits * SIDE**2 * 4 * 2,
)
