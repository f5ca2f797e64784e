"""Read the lab run of a session back from its meta: for pictures, the page and `lab`.

Sessions come from strangers: meta that a run of that lab does not write counts as no lab at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec

from pipelines import labs
from pipelines.config import value_text
from pipelines.labs.chart import Chart
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.figures import figure
from pipelines.labs.verdicts import Finding
from profiler.errors import BadInput

KEY: Final = "lab"  # The fact of a session's meta


@dataclass(frozen=True)
class Record:
    """A run of a lab: `measured` is None where it cannot be tried here or did not come to its end."""

    name: str
    lab: Lab[Parameters, Measured]
    parameters: Parameters
    measured: Measured | None
    finding: Finding | None

    @cached_property
    def chart(self) -> Chart | None:
        """The chart, computed once; None if nothing was measured, or nothing that can be drawn."""
        if self.measured is None:
            return None
        try:
            chart = self.lab.picture(self.measured)
            return chart if chart.layers else None
        except (ArithmeticError, ValueError, LookupError):
            return None  # figures of a stranger's session


def stored(
    name: str,
    parameters: Parameters,
    measured: Measured | None = None,
    finding: Finding | None = None,
    problem: str = "",
) -> dict[str, object]:
    """The fact as JSON values; measurements, finding and problem where there are some."""
    fact: dict[str, object] = {"name": name, "parameters": msgspec.to_builtins(parameters)}
    if measured is not None:
        fact["measured"] = msgspec.to_builtins(measured)
    if finding is not None:
        fact |= {"verdict": finding.verdict, "why": finding.why, "figures": dict(finding.figures)}
    if problem:
        fact["problem"] = problem
    return fact


def read(meta: Mapping[str, object]) -> Record | None:
    """The run in a session's meta, judged by the present rule; None if it is of no lab in its present form."""
    fact = meta.get(KEY)
    if not isinstance(fact, dict):
        return None
    try:
        lab = labs.load(str(fact.get("name", "")))
        parameters = msgspec.convert(fact.get("parameters"), type(lab.parameters))
        measured: Measured | None = msgspec.convert(fact.get("measured"), lab.stored | None, str_keys=True)
        finding = None if measured is None else lab.judge(measured)
    except (BadInput, msgspec.ValidationError, ArithmeticError, ValueError, LookupError):
        return None
    return Record(str(fact["name"]), lab, parameters, measured, finding)


def row(run: Record) -> dict[str, object]:
    """A run as `asrscope lab --json` and `show --json` give it, without its session."""
    lab, finding = run.lab, run.finding
    return {
        "name": run.name,
        "claim": lab.claim,
        "source": lab.source,
        "group": lab.group,
        "verdict": finding.verdict if finding else None,
        "why": finding.why if finding else None,
        "figures": dict(finding.figures) if finding else {},
        "said": [{"what": s.what, "value": s.value, "unit": s.unit, "ours": s.ours} for s in lab.published],
        "follows": lab.follows_from(finding.verdict) if finding else None,
    }


def lines(run: Record) -> list[str]:
    """A run as text: claim, verdict with its numbers, the claim's numbers next to ours, what follows."""
    lab, finding = run.lab, run.finding
    written = [f"{run.name}: {lab.cited}"]
    if finding is not None:
        written.append(f"  {finding.verdict}. {finding.why}")
        for each in lab.published:
            ours = finding.figures.get(each.ours)
            here = "not measured here" if ours is None else f"here {figure(ours, each.unit)}"
            written.append(f"  {each.what}: claimed {figure(each.value, each.unit)}, {here}")
        if follows := lab.follows_from(finding.verdict):
            written.append(f"  {follows}")
    return written


def settings(run: Record, *, changed: bool = False) -> list[str]:
    """The parameters as `--set` takes them; `changed`: only those that are not what the lab takes by itself."""
    return [
        f"{key}={value_text(value)}"
        for key in run.parameters.__struct_fields__
        if (value := getattr(run.parameters, key)) != getattr(run.lab.parameters, key) or not changed
    ]


def command(run: Record) -> list[str]:
    changed = settings(run, changed=True)
    return ["asrscope", "lab", run.name, *(word for text in changed for word in ("--set", text))]
