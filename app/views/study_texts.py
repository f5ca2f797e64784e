"""The texts and tables of a study: figures of a trial, summaries, rows of the trials, importance of each setting."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication

from app.charts.scale import percent
from app.model.figures import rate_name, rtf_text
from app.model.report_lines import interval_text, number
from app.model.study import OBJECTIVES, TIME, Study, Trial
from app.views.table_twin import Table
from pipelines.config import value_text
from pipelines.labs.chart import Axis, Bars, Chart
from profiler.plain import counted

tr = partial(QCoreApplication.translate, "StudyTexts")


def figure_text(value: float | None, name: str) -> str:
    unit = OBJECTIVES[name].unit
    digits = {"rtf": 3, "wer": 1}.get(name, 0)
    return f"{number(value, f'.{digits}f')} {unit}".rstrip()


def details(study: Study, trial: Trial) -> str:
    """The settings and all figures of a trial, or why it has none."""
    parts = [tr("Trial {0}: {1}").format(trial.id, trial.text)]
    if (ratio := study.figure(trial, TIME)) is not None:
        ends = study.ends(trial)
        interval = "" if ends is None else f" ({interval_text(ends)})"
        parts.append(tr("{0}{1} of the reference's time").format(figure_text(ratio, TIME), interval))
        parts.append(f"RTF {rtf_text(trial.rtf)}")
    for name, short in (("wer", f"{rate_name(trial.wer, trial.cer)} "), ("memory", ""), ("latency", tr("latency "))):
        if (figure := study.figure(trial, name)) is not None:
            parts.append(f"{short}{figure_text(figure, name)}")
    point = study.points.get(trial.id)
    if point is not None and point.why:
        parts.append(tr("not confirmed: {0}").format(point.why))
    if trial.why:
        parts.append(trial.why if trial.state == "done" else f"{tr(trial.state)}: {trial.why}")
    return " · ".join(parts)


def summary(study: Study) -> str:
    """How many trials ended and how, and how many are on the front."""
    if not study.trials:
        return tr("No trial has ended yet.")
    trials = counted(len(study.trials), tr("trial"), tr("trials"))
    states = ", ".join(f"{number} {tr(state)}" for state, number in study.counts().items())
    on_front = tr("{0} on the front").format(len(study.front)) if study.front else tr("none on the front")
    return f"{trials}: {states} · {on_front}"


def front_sentence(study: Study) -> str:
    points = [details(study, study.by_id[point.trial]) for point in study.front]
    return " ".join([f"{summary(study)}.", *(f"{point.rstrip('.')}." for point in points)])


def lines_sentence(study: Study) -> str:
    return tr("A line for each of {0} over {1}.").format(
        counted(len(study.trials), tr("trial"), tr("trials")), ", ".join(study.keys) or tr("no setting")
    )


def table(study: Study) -> Table:
    """A row for each trial."""
    others = [name for name in OBJECTIVES if name != TIME]
    headers = [tr("trial"), tr("front"), *study.keys, tr("time / reference"), tr("95 % interval")]
    headers += [f"{tr(study.title(name))} ({OBJECTIVES[name].unit})" for name in others]
    rows: list[list[object]] = []
    for trial in study.trials:
        chosen = (trial.settings.get(key) for key in study.keys)
        figures = [(study.figure(trial, name), ".1f" if name == "wer" else ".0f") for name in others]
        rows.append(
            [
                trial.id,
                "✓" if trial.id in study.points else "",
                *(value_text(value) if isinstance(value, bool) else value for value in chosen),
                number(study.figure(trial, TIME), ".3f"),
                interval_text(study.ends(trial)),
                *(number(*figure) for figure in figures),
                rtf_text(trial.rtf),
                tr(trial.state),
                trial.why or "",
            ]
        )
    return [*headers, "RTF", tr("state"), tr("remark")], rows


def importance_chart(study: Study) -> Chart:
    """Bars for each objective over the settings, in per cent."""
    keys = study.keys
    bars = tuple(
        Bars(tr(study.title(name)), tuple(100.0 * shares.get(key, 0.0) for key in keys))
        for name, shares in study.importance.items()
        if name in OBJECTIVES
    )
    return Chart(Axis("", categories=keys), Axis(tr("importance"), "%", low=0.0), bars)


def importance_table(study: Study) -> Table:
    headers = [tr("setting"), *(tr(study.title(name)) for name in study.importance if name in OBJECTIVES)]
    shares = [share for name, share in study.importance.items() if name in OBJECTIVES]
    return headers, [[key, *(percent(share.get(key, 0.0)) for share in shares)] for key in study.keys]


def importance_sentence(study: Study) -> str:
    """The setting that matters most for each objective."""
    parts = [
        tr("{0}: {1} matters most").format(tr(study.title(name)), max(shares, key=lambda key: shares[key]))
        for name, shares in study.importance.items()
        if shares and name in OBJECTIVES
    ]
    return f"{'; '.join(parts)}." if parts else tr("Known from ten trials on.")
