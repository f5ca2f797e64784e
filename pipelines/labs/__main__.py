"""A lab as a process of its own, for the window: the protocol is the worker's (`pipelines.worker`).

    {"do": "start", "preset": "matrix-orders", "config": {"n": 256}, "out": "a.asrs"}
    {"do": "stop"}    {"do": "quit"}

`preset` is the lab's name, `config` what changed of its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipelines import worker
from profiler.errors import BadInput
from profiler.plain import one_line
from profiler.process.children import read_arguments

if TYPE_CHECKING:
    from pipelines.run.control import Control


class Start(msgspec.Struct):
    """A `start` command."""

    preset: str
    config: dict[str, bool | int | float | str]
    out: str


class LabWorker(worker.Worker):
    """Runs labs where the other runs pipelines."""

    def execute(
        self, command: Mapping[str, object], control: Control, running: Callable[[Path | None], None]
    ) -> tuple[list[str], str]:
        from pipelines.labs.running import Request, execute

        try:
            start = msgspec.convert(command, Start)
        except msgspec.ValidationError as problem:
            raise BadInput(f"Not a command: {one_line(str(problem))}.") from None
        request = Request(start.preset, start.config, Path(start.out))
        outcome = execute(request, self.progress, lambda: control.stopping, running)
        return [outcome.problem] if outcome.problem else [], outcome.state


if __name__ == "__main__":
    read_arguments("pipelines.labs", __doc__)
    raise SystemExit(worker.main(LabWorker))
