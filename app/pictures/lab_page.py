"""The page of the docs about all labs: each claim with its picture, verdict and numbers, made of their sessions."""

import html
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage

from app.pictures.drawings import lab_picture
from app.pictures.writers import picture, png_file
from app.views.labs.card import SIGNS
from pipelines import labs
from pipelines.labs import record
from pipelines.labs.declaration import GROUPS, PublishedValue
from pipelines.labs.figures import figure
from pipelines.labs.record import Record
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, PART, UNDECIDED, Finding, Verdict
from profiler.files.outputs import writing
from profiler.plain import one_line
from profiler.session.reader import Session

PAGE: Final = "lab.md"
PICTURES: Final = "lab"
SIZE: Final = (1060, 560)
COLOURS: Final = 256
SCALE: Final = 1.0  # Pixels per point: a page has some fifty of these pictures

LEAD: Final = """# The lab: claims about cost, tried on one machine

Books and papers make claims about the cost of recognition and about what makes it faster. Each claim here is a lab.
`asrscope lab NAME` measures it on your machine and says whether it holds. `asrscope lab` lists the labs; the Lab page
of the window (Alt+L) shows them as a gallery.

This page was made by `{command}` on one machine ({machine}). Of {all} claims {verdicts}.{missing}
"""

COUNTED: Final[Mapping[Verdict, str]] = {
    HOLDS: "hold there",
    PART: "hold in part",
    FAILS: "do not",
    UNDECIDED: "could not be decided",
    IMPOSSIBLE: "could not be tried",
}


def write_page(sessions: Iterable[Path], folder: Path, command: str) -> Path:
    """Write PAGE (returned) and PICTURES of those sessions that are runs of labs; OutputError, SessionError."""
    pictures = folder / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    runs: dict[str, Record] = {}
    about = ""
    for path in sessions:
        with closing(Session.open(path)) as session:
            run = record.read(session.meta)
            if run is None or run.finding is None:
                continue
            runs[run.name] = run
            about = _about(session)
            if run.chart is not None:
                _draw(run, session, pictures)
    target = folder / PAGE
    with writing(target, "the page") as draft:
        draft.write_text(_page(runs, command, about), encoding="utf-8")
    return target


def _draw(run: Record, session: Session, folder: Path) -> None:
    for theme in ("light", "dark"):
        drawn = picture(lambda: lab_picture(run, session), "png", SIZE, scale=SCALE, theme=theme)
        with writing(folder / f"{run.name}-{theme}.png", "the picture") as draft:
            draft.write_bytes(_small(drawn))


def _small(png: bytes) -> bytes:
    """The same picture in its COLOURS most frequent colours: a third of the bytes, and no eye sees it."""
    whole = QImage.fromData(png)
    image = whole.convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.constBits(), np.uint32, image.width() * image.height())
    values, counts = np.unique(pixels, return_counts=True)
    palette = values[np.argsort(-counts, kind="stable")[:COLOURS]].tolist()
    few = image.convertToFormat(QImage.Format.Format_Indexed8, palette, Qt.ImageConversionFlag.AvoidDither)
    for key in whole.textKeys():
        few.setText(key, whole.text(key))
    return png_file(few)


def _page(runs: Mapping[str, Record], command: str, machine: str) -> str:
    found = {name: run.finding for name, run in runs.items() if run.finding is not None}
    verdicts = [finding.verdict for finding in found.values()]
    *most, last = [f"{verdicts.count(v)} {reported}" for v, reported in COUNTED.items() if v in verdicts] or ["0"]
    missing = [name for name in labs.names() if name not in runs]
    lead = LEAD.format(
        command=command,
        machine=machine,
        all=len(found),
        verdicts=f"{', '.join(most)} and {last}" if most else last,
        missing=f" Not run there yet: {', '.join(missing)}." if missing else "",
    )
    lines = [lead, "| | lab | claim |", "|---|---|---|"]
    lines += [f"| {SIGNS[one.verdict]} | [{n}](#{n}) | {runs[n].lab.claim} |" for n, one in found.items()]
    for group, heading in GROUPS.items():
        members = [name for name in found if runs[name].lab.group == group]
        lines += ["", f"## {heading}"] if members else []
        for name in members:
            lines += _section(name, runs[name], found[name])
    return "\n".join(lines) + "\n"


def _section(name: str, run: Record, finding: Finding) -> Iterator[str]:
    lab = run.lab
    yield from ("", f'<a id="{name}"></a>', "", f"### {lab.claim}", "")
    if run.chart is not None:
        title = html.escape(f"{lab.claim} {finding.verdict}", quote=True)
        yield "<picture>"
        yield f'<source media="(prefers-color-scheme: dark)" srcset="{PICTURES}/{name}-dark.png">'
        yield f'<img src="{PICTURES}/{name}-light.png" alt="{title}" width="{SIZE[0]}">'
        yield from ("</picture>", "")
    yield f"{SIGNS[finding.verdict]} **{finding.verdict}.** {finding.why}"
    if finding.verdict in lab.follows:
        yield from ("", f"*{lab.follows[finding.verdict]}*")
    if lab.published:
        yield from ("", "| | claimed | here |", "|---|---|---|")
        yield from (_row(said, finding.figures.get(said.ours)) for said in lab.published)
    source = f"From {lab.papers}; " if lab.papers else ""
    yield from ("", f"{lab.measured} {source}`asrscope lab {name}`.", "", lab.bound)


def _row(published: PublishedValue, ours: float | None) -> str:
    here = "not measured" if ours is None else figure(ours, published.unit)
    return f"| {published.what} | {figure(published.value, published.unit)} | {here} |"


def _about(session: Session) -> str:
    machine = session.meta.get("machine") or {}
    cores = (machine.get("cores") or {}).get("usable")
    day = datetime.fromtimestamp(float(session.meta.get("created_wall") or 0.0), UTC)
    return one_line(f"{machine.get('cpu', 'unknown')}, {cores} cores, {day:%Y-%m-%d}")
