"""Jobs of workers and their reports, as JSON: all messages between launcher and workers."""

from typing import Annotated, Final, Literal

import msgspec

Method = Literal["synchronous", "pipelined", "asynchronous", "consensus"]
Rule = Literal["constant", "by staleness"]
Kind = Literal["forward", "backward", "gradient", "update", "send", "wait", "local"]

SEGMENT: Final = 50
"""Frames whose mean loss is one value, half a second: neighbouring frames are no independent evidence."""

EXAMINED: Final = 2000
"""Frames that the loss is taken of: the first of the data, which lie there unchanged before they are varied."""

DIVERGED: Final = 1e6  # Nats; stands for the loss of a net whose weights are no numbers any more, which JSON cannot say
Count = Annotated[int, msgspec.Meta(ge=1)]


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One net, trained by one method and some of the workers.

    `batch`: examples of a minibatch; for `synchronous` of all workers together. `batches`: minibatches in a piece, of
    all workers together. `split`: for `pipelined`, the first layer of each worker. `accumulate`: minibatches whose
    mean gradient is sent at once, and `rule` what the server makes of the rate ("by staleness": divided by one more
    than the updates since the worker's copy, Zhang, Gupta, Lian & Liu 2016). `rho`, `local`: for `consensus`, the
    weight of the penalty and the minibatches between two exchanges.
    """

    name: str
    method: Method
    workers: Count
    batch: Count
    batches: Count
    rate: Annotated[float, msgspec.Meta(gt=0)]
    seed: int = 1
    split: tuple[int, ...] = ()
    accumulate: Count = 1
    rule: Rule = "constant"
    rho: float = 0.0
    local: Count = 1

    @property
    def ranks(self) -> int:
        return self.workers + (self.method == "asynchronous")


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several tasks in turns, a piece of each per round, so that whatever disturbs hits all alike.

    `data`: folder of shards with labels, on the first machine. `outputs`: the classes, all senones or the states
    of phones. `widths`, `bottleneck`, `context`: the net (frames on either side). `threads` of each worker.
    """

    tasks: list[Task]
    rounds: Count
    data: str = ""
    outputs: Literal["senones", "states"] = "states"
    widths: tuple[int, ...] = (256, 256, 256)
    bottleneck: int = 0
    context: int = 7
    threads: int = 1
    seed: int = 1


class Span(msgspec.Struct, frozen=True, array_like=True):
    """An action of a worker: nanoseconds of its clock, and the number of the minibatch (-1: none)."""

    kind: Kind
    begin: int
    end: int
    batch: int = -1


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank did in one piece. `ns`: time by kind; `delays`: updates between copy and use, by how often.

    `spans`: of the last round alone. `bytes`: sent and received.
    """

    rank: int
    ns: dict[str, int]
    bytes: int
    delays: dict[int, int] = {}
    spans: list[Span] = []


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A task's piece of one round.

    `seconds` from the moment all began until all had finished; `examples`, `updates` of this piece alone. `segments`:
    mean cross-entropy of each segment of the examined frames afterwards, nats. `residuals`: for `consensus`,
    primal and dual of each exchange.
    """

    task: int
    round: int
    seconds: float
    examples: int
    updates: int
    segments: list[float]
    reports: list[Report]
    residuals: list[tuple[float, float]] = []
