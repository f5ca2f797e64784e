"""Lab `asynchronous-sgd`: workers that do not wait for each other, a parameter server between them."""

from collections.abc import Sequence
from typing import Annotated

from msgspec.structs import replace

from pipelines.labs import _training as shared
from pipelines.labs.chart import Axis, Bars, Chart, Line, Mark
from pipelines.labs.declaration import Lab, Measured, PublishedValue, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import ci, percent, quotient, ratio, ratio_columns, value
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, Verdict, all_of, at_least, at_most

HIDDEN = (256, 256, 256)
WIDTHS = (15 * 39, *HIDDEN, 126)
RATE = 0.1
SAID_4 = 3.2  # Zhang et al. 2013, on 4 GPUs, without loss.
COMPUTING, EXCHANGE = ("gradient", "update", "local"), ("send", "wait")  # Kinds of work


class Params(shared.Workers, frozen=True, kw_only=True):
    workers: Annotated[int, setting("Workers", "Workers beside the parameter server.", ge=2, le=64)] = 2
    batch: Annotated[int, setting("Minibatch", "Examples of a worker's minibatch.", unit="frames", ge=1, le=4096)] = 128
    accumulate: Annotated[int, setting("Accumulated", "Minibatches whose mean gradient is sent.", ge=2, le=256)] = 4
    batches: Annotated[int, setting("Minibatches", "Minibatches in a round of each way.", ge=16, le=1_000_000)] = 480
    rounds: Annotated[int, setting("Rounds", "Rounds in turns; each is one time of each way.", ge=3, le=100)] = 7


class AsynchronousSgdResult(Measured, frozen=True, kw_only=True):
    """Curves: one worker; synchronous; asynchronous, with an exchange for each minibatch, for several, and with the
    rate divided by staleness; of the asynchronous ones the first worker is the server."""

    workers: int
    batch: int
    accumulate: int
    parameters: int
    curves: list[shared.Curve]


def measure(params: Params, desk: Desk) -> AsynchronousSgdResult:
    from pipelines.training.parallel.job import Job, Task

    n = params.workers

    each = Task(
        name="each batch", method="asynchronous", workers=n, batch=params.batch, batches=params.batches, rate=RATE
    )
    tasks = [
        replace(each, name="one worker", method="synchronous", workers=1),
        shared.synchronous(each),
        each,
        replace(each, name=f"{params.accumulate} batches", accumulate=params.accumulate),
        replace(each, name="by staleness", rule="by staleness"),
    ]
    job = Job(tasks=tasks, rounds=params.rounds, widths=HIDDEN)
    curves, _ = shared.trained(desk, job, params)
    return AsynchronousSgdResult(
        workers=n, batch=params.batch, accumulate=params.accumulate, parameters=shared.weights(WIDTHS), curves=curves
    )


def seconds_of(curve: shared.Curve, kinds: Sequence[str]) -> float:
    """Seconds that the workers, without the server, spent on these kinds of work."""
    return sum(each.seconds.get(kind, 0.0) for each in curve.by_worker[-curve.workers :] for kind in kinds)


def share_of(curve: shared.Curve, kinds: Sequence[str]) -> float:
    """As `seconds_of`, of all their time."""
    every = sum(sum(each.seconds.values()) for each in curve.by_worker[-curve.workers :])
    return seconds_of(curve, kinds) / max(every, 1e-12)


def modelled(curve: shared.Curve, workers: int) -> float:
    """The speed-up of `workers` separate devices over one that exchanges nothing: n, less the share of exchanges.

    Once the server is always busy: the computing time between exchanges over the server's time for one.
    """
    computing = seconds_of(curve, COMPUTING)
    served = curve.by_worker[0].seconds
    server = served.get("update", 0.0) + served.get("send", 0.0)
    return min(workers * computing / (computing + server), computing / max(server, 1e-12))


def judge(result: AsynchronousSgdResult) -> Finding:
    one, synchronous, each, several, slowed = result.curves
    speed = ratio(one.per_example, several.per_example)
    without = ratio(one.per_example, each.per_example)
    against = ratio(synchronous.per_example, several.per_example)
    loss = quotient(several.segments[-1], synchronous.segments[-1])
    waited, waited_each = share_of(several, EXCHANGE), share_of(each, EXCHANGE)
    # That fewer exchanges take a smaller share is counted over thousands of them; it needs no interval.
    fewer: Verdict = HOLDS if waited < waited_each else FAILS
    verdict = all_of(at_least(speed, 1.0), at_least(against, 1.0), at_most(loss, shared.NO_LOSS), fewer)
    model = modelled(several, 4)
    why = (
        f"{result.workers} workers with an exchange for {result.accumulate} minibatches are {ci(speed)} times "
        f"as fast as one worker ({ci(without)} with an exchange for each, {ci(against)} times synchronous "
        f"ones); exchanges take {percent(waited)} of their time, not {percent(waited_each)}; the loss "
        f"is {shared.loss_text(loss)} that of synchronous training after as many examples. 4 devices of their own "
        f"would be {model:.2g} times as fast, if the server kept its time for an exchange."
    )
    figures: dict[str, float | None] = {
        "speed_up": value(speed),
        "speed_up_each": value(without),
        "speed_over_synchronous": value(against),
        "communication_share_each": waited_each,
        "communication_share_accumulated": waited,
        "communication_share_synchronous": share_of(synchronous, EXCHANGE),
        "loss_over_synchronous": loss.ratio,
        "loss_by_staleness_over_each": slowed.losses[-1] / each.losses[-1],
        "mean_staleness_updates": shared.mean_delay(each.by_worker[0]),
        "modelled_speed_up_4": model,
        "bytes_per_exchange": 2.0 * 4 * (result.parameters + 1),
    }
    return Finding(verdict, why, figures)


def picture(result: AsynchronousSgdResult) -> Chart:
    curves, named = result.curves, {curve.name: curve for curve in result.curves}
    ways = Axis("way", categories=tuple(named))
    speed = Bars("speed", *ratio_columns([ratio(curves[0].per_example, curve.per_example) for curve in curves]))
    parts = tuple(
        Bars(title, tuple(100 * share_of(curve, kinds) for curve in curves), stacked=True)
        for title, kinds in (("computing", COMPUTING), ("exchange", EXCHANGE))
    )
    late = tuple(Line(curve.name, *_histogram(curve.by_worker[0].delays)) for curve in curves[2:])
    return Chart(
        ways,
        Axis("over one worker", "×", low=0.0),
        (speed, Mark("one worker", 1.0), Mark("Zhang 2013, 4 GPUs", SAID_4)),
        title="Speed",
        beside=(
            Chart(ways, Axis("workers' time", "%", low=0.0, high=100.0), parts, title="Exchanges"),
            Chart(Axis("updates since the copy"), Axis("gradients", "%", low=0.0), late, title="Staleness"),
            shared.losses(named, "seconds", Axis("training", "s")),
            shared.losses(named, "examples", Axis("examples")),
        ),
    )


def _histogram(delays: dict[int, int]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    all_delays, every = max(sum(delays.values()), 1), range(max(delays, default=0) + 1)
    return tuple(map(float, every)), tuple(100 * delays.get(d, 0) / all_delays for d in every)


LAB = Lab(
    claim="Workers that each train on a copy and never wait for each other are faster, and sending the "
    "gradient of several minibatches at once, with a lower rate, saves the transfers.",
    source="note 1 (Yu & Deng, ch. 7; Zhang et al. 2013)",
    group="training",
    measured="A net of 3 × 256 on the shipped voices, trained by one worker, by synchronous data parallelism, "
    "and with a parameter server: an exchange for each minibatch, for several, and with the rate divided by "
    "staleness. All see the same examples, in turns. Each worker has one thread; the server is one more process; "
    "data are sent through gloo.",
    bound="It holds if workers are faster than one worker and than workers that wait, if fewer exchanges take "
    "less of their time, and if the loss ends at most a twentieth above that of synchronous training. Zhang 2013 "
    "reports no loss; the twentieth is ours, as a few rounds cannot tell less. The loss is measured on the "
    "training frames, as in `minibatch`.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: let workers run on, and let them gather several minibatches before they exchange.",
        FAILS: "So: count what an exchange costs against what a minibatch computes before you add workers; "
        "here it is too much, or old gradients cost too much.",
        UNDECIDED: "So: give it more rounds (--set rounds=20) with nothing else running.",
    },
    published=(PublishedValue("speed-up on 4 GPUs, modelled here", SAID_4, "×", "modelled_speed_up_4"),),
    bytes_needed=lambda params: shared.processes_bytes(params.workers + 2, shared.weights(WIDTHS)),
)
