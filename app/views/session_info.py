"""What the session is: when, where and with what settings it was recorded, what was noted, how to record it again.

And what the run did before its first frame, as a waterfall. Its times count from the start of the process for `asrscope
run`, else from the first span of set-up: a process of the window waits for its user, and decodes more than once.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.layout import NONE, lay_out
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import Wrapped
from app.views.table_twin import Table
from app.views.view import TableView
from profiler.plain import counted, one_line
from profiler.session.reader import Session

if TYPE_CHECKING:
    from app.views.labs.card import Panels


TITLES: Final = {  # Stages of the start in order; all others belong to the run
    "setup.device": "open the device",
    "setup.model": "read the acoustic model",
    "setup.search": "compile or load the kernels of the search",
    "setup.graph": "build or load the search graph",
    "setup.compile": "compile or load the other kernels",
    "setup.roofs": "measure this machine",
    "setup.idle": "measure the power of the idle machine",
    "decode.utterance": "first file: read, front end",
    "decode.block": "first block: score, search",
}
LIBRARIES: Final = "start Python, load libraries"


class Phase(NamedTuple):
    """A step of the start and its times in seconds."""

    title: str
    begin_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.begin_s


def phases(session: Session) -> tuple[Phase, ...]:
    """The steps before and with the first block, in order of time; none where nothing was decoded yet."""
    first: dict[str, tuple[int, int]] = {}
    for number, stage in session.stages.items():
        mine = session.spans[session.spans["stage"] == number] if stage.name in TITLES else session.spans[:0]
        if len(mine):
            at = int(mine["start_ns"].argmin())
            first[stage.name] = int(mine["start_ns"][at]), int(mine["duration_ns"][at])
    if "decode.block" not in first:
        return ()
    zero = min(start for start, _ in first.values())
    before = _before(session)
    found = [Phase(LIBRARIES, 0.0, before)] if before else []
    for name, (start, duration) in sorted(first.items(), key=lambda one: one[1]):
        begin = before + (start - zero) * 1e-9
        found.append(Phase(TITLES[name], begin, begin + duration * 1e-9))
    return tuple(found)


def _before(session: Session) -> float:
    """Seconds from the start of the process to that of the session; 0 where they are not the start of a run."""
    created, started = session.meta.get("created_wall"), (session.meta.get("writer") or {}).get("started")
    if (session.meta.get("argv") or [])[1:2] != ["run"] or created is None or started is None:
        return 0.0
    return max(float(created - started), 0.0)


def longest(steps: Sequence[Phase]) -> Phase:
    return max(steps, key=lambda one: one.seconds)


class SessionView(TableView):
    """Machine, device, versions, audio with its notes, settings, the command that records it again; and its start."""

    id = "session"
    title = "Session"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.rows.cells.texts = True
        self.rows.wrap_columns(-1)
        self.start = StartPage()
        self.add_page("start", self.tr("Start"), self.tr("What came before the first frame, step by step"), self.start)

    def draw(self, snapshot: Snapshot) -> None:
        if self.page:
            self.start.show_session(snapshot.session)
            whole = bool(self.start.steps) and self.start.steps[0].title == LIBRARIES
            self.set_note(self.tr("since the process began") if whole else self.tr("since set-up began"))
        else:
            super().draw(snapshot)
            self.set_note("")

    def clear(self) -> None:
        super().clear()
        self.start.show_session(None)

    def table(self) -> Table:
        if self.page:
            return self.start.table()
        known = () if self.snapshot is None else facts(self.snapshot.session)
        return [self.tr("what"), self.tr("value")], [*known]

    def summary(self) -> str:
        if self.page:
            return self.start.summary()
        known = {str(name): str(value) for name, value in self.table()[1]}
        parts = (f"{name} {known[name]}" for name in ("file", "recorded", "machine") if name in known)
        return ", ".join(parts) or self.tr("No session yet.")


def facts(session: Session) -> Iterator[tuple[str, str]]:
    from app.model import provenance
    from pipelines.labs import record

    run = record.read(session.meta)
    yield "file", one_line(str(session.path), 400)
    yield from provenance.origin(session, run)
    yield from _devices(session)
    yield from (("acoustic model", one_line(model)) for model in session.meta.get("acoustic_models") or ())
    yield from _audio(session)
    yield from (("note", one_line(note, 400)) for note in session.meta.get("notes") or ())
    named: dict[str, dict[str, None]] = {}
    for utterance in session.utterances:
        for note in utterance.notes:
            named.setdefault(note, {})[utterance.name] = None
    for note, names in named.items():
        some = ", ".join([*names][:3]) + (" …" if len(names) > 3 else "")
        yield "note on the sound", one_line(f"{note} ({some})", 400)
    if words := provenance.command(session, run):
        yield "record it again", one_line(shlex.join(words), 2000)


def _devices(session: Session) -> Iterator[tuple[str, str]]:
    for kind, known in (session.meta.get("devices") or {}).items():
        memory, runtime = known.get("total_memory", ""), known.get("runtime")
        size = f"{int(memory) / 2**30:.0f} GiB" if memory.isdigit() else ""
        parts = filter(None, (known.get("name"), size, f"{kind} {runtime}" if runtime else ""))
        yield "device", one_line(", ".join(parts) or kind, 200)


def _audio(session: Session) -> Iterator[tuple[str, str]]:
    places = {Path(one.path): None for one in session.utterances if one.path}
    if not places:
        return
    folders = {place.parent: None for place in places}
    length = sum(one.audio_s for one in session.utterances)
    files = counted(len(places), "file", "files")
    where = str(next(iter(places))) if len(places) == 1 else ", ".join(map(str, folders))
    yield "audio", one_line(f"{files}, {length:.1f} s decoded: {where}", 600)


class StartPage(QWidget):
    """When the first frame was decoded, and what came before it."""

    def __init__(self) -> None:
        super().__init__()
        self.about = Wrapped("")
        self._column = lay_out(QVBoxLayout(self), self.about, margins=NONE)
        self._column.addStretch(1)
        self.steps: tuple[Phase, ...] = ()
        self.chart: Panels | None = None

    def show_session(self, session: Session | None) -> None:
        """Draw the steps, which stay as they are once the first block is decoded."""
        before, self.steps = self.steps, () if session is None else phases(session)
        if self.steps != before:
            if self.chart is not None:
                self.chart.deleteLater()
            self.chart = _waterfall(self.steps) if self.steps else None
            if self.chart is not None:
                self._column.insertWidget(1, self.chart, 1000)
        self.about.setText(self.summary())

    def summary(self) -> str:
        if not self.steps:
            return self.tr("No frame is decoded yet.")
        most = longest(self.steps)
        text = self.tr("The first block was decoded after {0} s; {1} took longest ({2} s).")
        return text.format(f"{self.steps[-1].end_s:.2f}", self.tr(most.title), f"{most.seconds:.2f}")

    def table(self) -> Table:
        headers = [self.tr(text) for text in ("step", "begins s", "ends s", "takes s")]
        times = [(one.begin_s, one.end_s, one.seconds) for one in self.steps]
        figures = [[f"{second:.3f}" for second in each] for each in times]
        return headers, [[self.tr(one.title), *row] for one, row in zip(self.steps, figures, strict=True)]


def _waterfall(steps: tuple[Phase, ...]) -> Panels:
    """The steps in rows over the time; what draws the labs is loaded with the first one."""
    from app.views.labs.card import Panels
    from pipelines.labs.chart import Axis, Block, Chart, Gantt

    blocks = tuple(Block(row, one.begin_s, one.end_s, "", "") for row, one in enumerate(steps))
    names = tuple(f"{one.title} · {one.seconds:.2f} s" for one in steps)
    return Panels(Chart(Axis("", "s", low=0.0), Axis("", categories=names), (Gantt(blocks),)))
