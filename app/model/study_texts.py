"""The study of a sweep in words, tables and charts: its front, its trials, the importance of each setting. No Qt."""

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from app.model.document import Document, Drawing, Part, Table, interval, joined, number, percent
from app.model.study import OBJECTIVES, TIME, Study, Trial
from pipelines.audio.word_errors import rate_name
from pipelines.config import Value, value_text
from pipelines.labs.chart import Axis, Bars, Chart, Layer, Line, Mark, Note
from profiler.plain import counted, rtf_text

NOTE: Final = 0.09  # Share of the range of x that a note of settings is wide; closer points have the trial's number
ROOM: Final = 0.06  # Share of the range of x that is free on each side
TRIED, FRONT = "tried", "front"
LOOKS: Final = {TRIED: ("unexplained", 4), FRONT: ("compute", 0)}
UNDECIDED: Final = "their order is undecided"


def document(study: Study) -> Document:
    """The front with its intervals, what is undecided or failed, and the importance of each setting."""
    every = trials(study)
    parts: list[Part] = [
        Drawing("Front of the sweep", front_chart(study), front_sentence(study), LOOKS),
        replace(every, title="Front", rows=[row for row in every.rows if row[1]]),
        *(f"The interval of trial {point.trial} touches that of {others}: {UNDECIDED}."
          for point in study.front if (others := " and ".join(map(str, point.touches)))),
        *(f"Trial {point.trial} is not confirmed: {point.why}" for point in study.front if point.why),
        *(f"Trial {trial.id}: {trial.state}. {trial.why}" for trial in study.trials if trial.why),
        importance_table(study),
        replace(every, aside=True),
        f"Study: {study.study}",
    ]  # fmt: skip
    return Document(summary(study), parts)


def figure_text(value: float | None, name: str) -> str:
    unit = OBJECTIVES[name].unit
    digits = {"rtf": 3, "wer": 1}.get(name, 0)
    return f"{number(value, f'.{digits}f')} {unit}".rstrip()


def details(study: Study, trial: Trial) -> str:
    """The settings and all figures of a trial, or why it has none."""
    parts = [f"Trial {trial.id}: {trial.text}"]
    if (ratio := study.figure(trial, TIME)) is not None:
        ends = study.ends(trial)
        between = "" if ends is None else f" ({interval(ends)})"
        parts += [f"{figure_text(ratio, TIME)}{between} of the reference's time", f"RTF {rtf_text(trial.rtf)}"]
    for name, short in (("wer", f"{rate_name(trial.wer, trial.cer)} "), ("memory", ""), ("latency", "latency ")):
        if (figure := study.figure(trial, name)) is not None:
            parts.append(f"{short}{figure_text(figure, name)}")
    point = study.points.get(trial.id)
    if point is not None and point.why:
        parts.append(f"not confirmed: {point.why}")
    if trial.why:
        parts.append(trial.why if trial.state == "done" else f"{trial.state}: {trial.why}")
    return joined(*parts)


def summary(study: Study) -> str:
    """How many trials ended and how, and how many are on the front."""
    if not study.trials:
        return "No trial has ended yet."
    counts = Counter(trial.state for trial in study.trials)
    states = ", ".join(f"{number} {state}" for state, number in counts.items())
    on_front = f"{len(study.front)} on the front" if study.front else "none on the front"
    return f"{counted(len(study.trials), 'trial', 'trials')}: {states} · {on_front}"


def front_sentence(study: Study) -> str:
    points = [details(study, study.by_id[point.trial]) for point in study.front]
    return " ".join([f"{summary(study)}.", *(f"{point.rstrip('.')}." for point in points)])


def lines_sentence(study: Study) -> str:
    trials = counted(len(study.trials), "trial", "trials")
    return f"A line for each of {trials} over {', '.join(study.keys) or 'no setting'}."


def trials(study: Study) -> Table:
    """A row for each trial."""
    others = [name for name in OBJECTIVES if name != TIME]
    headers = ["trial", "front", *study.keys, "time / reference", "95 % interval"]
    headers += [f"{study.title(name)} ({OBJECTIVES[name].unit})" for name in others]
    rows = [
        [
            *(trial.id, "✓" if trial.id in study.points else "", *study.chosen(trial)),
            *(number(study.figure(trial, TIME), ".3f"), interval(study.ends(trial))),
            *(number(study.figure(trial, name), ".1f" if name == "wer" else ".0f") for name in others),
            *(rtf_text(trial.rtf), trial.state, trial.why or ""),
        ]
        for trial in study.trials
    ]
    return Table("Trials of the sweep", [*headers, "RTF", "state", "remark"], rows)


def other_objective(study: Study) -> str | None:
    """The first objective other than time; None without one."""
    return next((name for name in study.objectives if name != TIME), None)


def front_chart(study: Study) -> Chart:
    """The chart of a sweep: x is the first objective other than time, or else the number of the trial."""
    other = other_objective(study)
    x = Axis("trial") if other is None else Axis(study.title(other), OBJECTIVES[other].unit)
    at, ratios = places(study)
    done = sorted((study.by_id[number] for number in at), key=lambda trial: at[trial.id])
    on_front = [trial for trial in done if trial.id in study.points]
    rest = [trial for trial in done if trial.id not in study.points]
    layers: list[Layer] = [Mark("reference", 1.0)]

    def line(name: str, trials: list[Trial]) -> Line:
        return Line(name, tuple(at[one.id] for one in trials), tuple(ratios[one.id] for one in trials), joined=False)

    if rest:
        layers.append(line(TRIED, rest))
    if on_front:
        ends = [study.ends(trial) or (ratios[trial.id], ratios[trial.id]) for trial in on_front]
        low, high = zip(*ends, strict=True)
        if len(study.objectives) <= 2:  # of three it is no line
            layers.append(replace(line(FRONT, on_front), joined=True, steps=True))
        layers.append(replace(line(FRONT, on_front), low=low, high=high))
        span = at[done[-1].id] - at[done[0].id]
        gaps = (at[b.id] - at[a.id] for a, b in itertools.pairwise(on_front))
        apart = min(gaps, default=span or 1.0)
        for trial, end in zip(on_front, low, strict=True):
            text = _short(trial.settings) if apart > NOTE * span else f"#{trial.id}"
            layers.append(Note(text, at[trial.id], end))
    if done:  # no point at the edge
        low_end, high_end = at[done[0].id], at[done[-1].id]
        room = ROOM * (high_end - low_end) or 1.0
        x = replace(x, low=low_end - room, high=high_end + room)
    return Chart(x, Axis("time / reference, 95 % intervals"), tuple(layers), "Time of the settings tried")


def places(study: Study) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """x and the ratio to the reference of each trial that has both, by its number."""
    other = other_objective(study)
    at, ratios = dict[int, float](), dict[int, float]()
    for trial in study.trials:
        x = float(trial.id) if other is None else study.figure(trial, other)
        ratio = study.figure(trial, TIME)
        if x is not None and ratio is not None:
            at[trial.id], ratios[trial.id] = x, ratio
    return at, ratios


def _short(chosen: Mapping[str, Value]) -> str:
    return "\n".join(f"{key.rpartition('.')[2]} {value_text(value)}" for key, value in chosen.items())


def importance_chart(study: Study) -> Chart:
    """Bars for each objective over the settings, in per cent."""
    bars = tuple(
        Bars(study.title(name), tuple(100.0 * shares.get(key, 0.0) for key in study.keys))
        for name, shares in _importance(study).items()
    )
    return Chart(Axis("", categories=study.keys), Axis("importance", "%", low=0.0), bars)


def importance_table(study: Study) -> Table:
    known = _importance(study)
    headers = ["setting", *map(study.title, known)]
    rows = [[key, *(percent(shares.get(key, 0.0)) for shares in known.values())] for key in study.keys if known]
    return Table("Importance of each setting", headers, rows)


def importance_sentence(study: Study) -> str:
    """The setting that matters most for each objective."""
    known = {name: shares for name, shares in _importance(study).items() if shares}
    parts = [f"{study.title(name)}: {max(known[name], key=known[name].__getitem__)} matters most" for name in known]
    return f"{'; '.join(parts)}." if parts else "Known from ten trials on."


def _importance(study: Study) -> Mapping[str, Mapping[str, float]]:
    return {name: shares for name, shares in study.importance.items() if name in OBJECTIVES}
