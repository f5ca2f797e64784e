"""Lab `consensus-admm`: an augmented Lagrangian in place of gradients that are sent all the time."""

from typing import Annotated

from msgspec.structs import replace

from pipelines.labs import _training as shared
from pipelines.labs.chart import Axis, Chart, Line
from pipelines.labs.declaration import Lab, Measured, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import ci, format_number, quotient
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, UNDECIDED, Finding, all_of, at_most

HIDDEN = (256, 256, 256)
WIDTHS = (15 * 39, *HIDDEN, 126)
RATE = 0.1
RHOS = (0.01, 0.1, 1.0)
FEW = 4  # Devices up to which the claim says nothing


class Params(shared.Workers, frozen=True, kw_only=True):
    workers: Annotated[int, setting("Workers", "Workers of every way.", ge=2, le=64)] = 5
    """More than four, as the claim has it."""
    batch: Annotated[int, setting("Minibatch", "Examples of a worker's minibatch.", unit="frames", ge=1, le=4096)] = 128
    local: Annotated[int, setting("Between exchanges", "Minibatches of each worker alone.", ge=1, le=100_000)] = 25
    exchanges: Annotated[int, setting("Exchanges", "Exchanges in a round of ADMM.", ge=1, le=10_000)] = 4
    rounds: Annotated[int, setting("Rounds", "Points of each curve.", ge=2, le=1000)] = 8


class ConsensusAdmmResult(Measured, frozen=True, kw_only=True):
    """Curves: synchronous, asynchronous, then ADMM with each ρ."""

    workers: int
    rhos: list[float]
    exchanges: int
    parameters: int
    curves: list[shared.Curve]


def measure(params: Params, desk: Desk) -> ConsensusAdmmResult:
    from pipelines.training.parallel.job import Job, Task

    n, batches = params.workers, params.workers * params.local * params.exchanges
    late = Task(name="asynchronous", method="asynchronous", workers=n, batch=params.batch, batches=batches, rate=RATE)
    ours = [replace(late, name=f"ADMM, ρ = {rho:g}", method="consensus", rho=rho, local=params.local) for rho in RHOS]
    job = Job(tasks=[shared.synchronous(late), late, *ours], rounds=params.rounds, widths=HIDDEN)
    curves, _ = shared.trained(desk, job, params)
    return ConsensusAdmmResult(
        workers=n, rhos=list(RHOS), exchanges=params.exchanges, parameters=shared.weights(WIDTHS), curves=curves
    )


def best(result: ConsensusAdmmResult) -> tuple[float, shared.Curve]:
    """The ρ of the ADMM that ends with the lowest loss, and its curve."""
    return min(zip(result.rhos, result.curves[2:], strict=True), key=lambda each: each[1].losses[-1])


def judge(result: ConsensusAdmmResult) -> Finding:
    rho, ours = best(result)
    synchronous, theirs = result.curves[:2]
    loss = quotient(ours.segments[-1], theirs.segments[-1])
    against = quotient(ours.segments[-1], synchronous.segments[-1])
    fewer = sum(theirs.bytes) / max(sum(ours.bytes), 1)
    verdict = all_of(at_most(loss, shared.NO_LOSS), HOLDS if fewer > 1 else FAILS)
    if result.workers <= FEW:
        verdict = IMPOSSIBLE  # the claim is about more of them
    staleness = shared.mean_delay(theirs.by_worker[0])
    primal, dual = ours.residuals[-1]
    why = (
        f"With {result.workers} workers and ρ = {rho:g}, ADMM ends with {ci(loss)} "
        f"times the loss of asynchronous SGD (gradients {staleness:.1f} updates late) and {ci(against)} times "
        f"that of synchronous SGD after as many examples, and sends {fewer:.0f} times fewer bytes; its "
        f"residuals end at {format_number(primal)} (primal) and {format_number(dual)} (dual)."
    )
    figures: dict[str, float | None] = {
        "loss_over_asynchronous": loss.ratio,
        "loss_over_synchronous": against.ratio,
        "bytes_asynchronous_over_admm": fewer,
        "bytes_synchronous_over_admm": sum(synchronous.bytes) / max(sum(ours.bytes), 1),
        "best_rho": rho,
        "primal_residual": primal,
        "dual_residual": dual,
        "staleness_of_asynchronous_updates": staleness,
    }
    return Finding(verdict, why, figures)


def picture(result: ConsensusAdmmResult) -> Chart:
    _, ours = best(result)
    steps = tuple(float(n + 1) for n in range(len(ours.residuals)))
    primal, dual = zip(*ours.residuals, strict=True)
    residuals = Line("primal residual", steps, primal), Line("dual residual", steps, dual)
    named = {curve.name: curve for curve in result.curves}
    by_bytes = shared.losses(named, "bytes", Axis("bytes sent and received", "B", log=True))
    beside = (
        shared.losses(named, "examples", Axis("examples")),
        Chart(Axis("exchange"), Axis("root mean square", log=True), residuals, title=ours.name),
    )
    return replace(by_bytes, beside=beside)


LAB = Lab(
    claim="With more than four devices, where late gradients hurt, an augmented Lagrangian method trains as "
    "well on far fewer exchanges.",
    source="note 1 (Yu & Deng, ch. 7; Boyd et al. 2011, § 7.1)",
    group="training",
    measured="Consensus ADMM on a net of 3 × 256 and the shipped voices with three values of ρ, compared with "
    "asynchronous and synchronous SGD with the same workers, examples and rate: loss by examples and by bytes "
    "sent, primal and dual residuals. The speed on more devices is not measured; they would wait for the bytes.",
    bound="It holds if ADMM ends with at most a twentieth more loss than asynchronous SGD, and sends fewer "
    "bytes. The claim is about more than four workers, so with fewer it is not tried. No figure for speech was "
    "published, so both bounds are ours. The best of three ρ counts, as no source says how to choose one. The "
    "loss is measured on the training frames, as in `minibatch`.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: where exchanges are expensive, between machines, let workers train apart for a while and "
        "agree now and then.",
        FAILS: "So: agreeing now and then costs more loss here than late gradients do; send gradients as long "
        "as the connection can carry them.",
        UNDECIDED: "So: give it more rounds (--set rounds=20): their losses lie too close together here.",
    },
    bytes_needed=lambda params: shared.processes_bytes(params.workers + 2, 2 * shared.weights(WIDTHS)),
)
