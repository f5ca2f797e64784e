"""What the session is: when, where and with what settings it was recorded, what was noted, how to record it again.

And what the run did before its first frame, as a waterfall. Its times count from the start of the process for `asrscope
run`, else from the first span of set-up: a process of the window waits for its user, and decodes more than once.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
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


TITLES: Final = {
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
"""Stages of the start in order, as a person reads them; all others belong to the run."""

LIBRARIES: Final = "start Python, load libraries"

NS: Final = 1e-9


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
    names = {number: stage.name for number, stage in session.stages.items()}
    first: dict[str, tuple[int, int]] = {}
    for number, name in names.items():
        mine = session.spans[session.spans["stage"] == number] if name in TITLES else session.spans[:0]
        if len(mine):
            at = int(mine["start_ns"].argmin())
            first[name] = int(mine["start_ns"][at]), int(mine["duration_ns"][at])
    if "decode.block" not in first:
        return ()
    zero = min(start for start, _ in first.values())
    before = _before(session)
    found = [Phase(LIBRARIES, 0.0, before)] if before else []
    for name, (start, duration) in sorted(first.items(), key=lambda one: one[1]):
        begin = before + (start - zero) * NS
        found.append(Phase(TITLES[name], begin, begin + duration * NS))
    return tuple(found)


def _before(session: Session) -> float:
    """Seconds from the start of the process to that of the session; 0 where they are not the start of a run."""
    argv, writer, created = (session.meta.get(key) for key in ("argv", "writer", "created_wall"))
    started = writer.get("started") if isinstance(writer, dict) else None
    if not isinstance(argv, list) or argv[1:2] != ["run"]:
        return 0.0
    if not isinstance(started, int | float) or not isinstance(created, int | float):
        return 0.0
    return max(float(created - started), 0.0)


def longest(steps: Sequence[Phase]) -> Phase:
    return max(steps, key=lambda one: one.seconds)


NAMED = 3  # Utterances that a note names


class SessionView(TableView):
    """Machine, device, versions, audio with its notes, settings, the command that records it again; and its start."""

    id = "session"
    title = "Session"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self._table_model.texts = True
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
        headers = [self.tr("what"), self.tr("value")]
        if self.snapshot is None:
            return headers, []
        return headers, [[name, value] for name, value in facts(self.snapshot.session)]

    def summary(self) -> str:
        if self.page:
            return self.start.summary()
        known = {str(name): str(value) for name, value in self.table()[1]}
        parts = (f"{name} {known[name]}" for name in ("file", "recorded", "machine") if name in known)
        return ", ".join(parts) or self.tr("No session yet.")


def facts(session: Session) -> Iterator[tuple[str, str]]:
    """Names and values of all that a session says of itself; what is not known is left out."""
    from app.model import provenance
    from pipelines.labs import record

    run = record.read(session.meta)
    yield "file", one_line(str(session.path), 400)
    yield from provenance.origin(session, run)
    yield from _devices(session)
    models = session.meta.get("acoustic_models")
    if isinstance(models, list):
        yield from (("acoustic model", one_line(str(model))) for model in models)
    yield from _audio(session)
    notes = session.meta.get("notes")
    if isinstance(notes, list):
        yield from (("note", one_line(str(note), 400)) for note in notes)
    named: dict[str, dict[str, None]] = {}
    for utterance in session.utterances:
        for note in utterance.notes:
            named.setdefault(note, {})[utterance.name] = None
    for note, names in named.items():
        some = ", ".join([*names][:NAMED]) + (" …" if len(names) > NAMED else "")
        yield "note on the sound", one_line(f"{note} ({some})", 400)
    if words := provenance.command(session, run):
        yield "record it again", one_line(shlex.join(words), 2000)


def _devices(session: Session) -> Iterator[tuple[str, str]]:
    devices = session.meta.get("devices")
    if not isinstance(devices, Mapping):
        return
    for kind, described in devices.items():
        known = described if isinstance(described, Mapping) else {}
        parts = [str(known["name"])] if "name" in known else []
        memory = str(known.get("total_memory", ""))
        if memory.isdigit():
            parts.append(f"{int(memory) / 2**30:.0f} GiB")
        if "runtime" in known:
            parts.append(f"{kind} {known['runtime']}")
        yield "device", one_line(", ".join(parts) or str(kind), 200)


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
        found = () if session is None else phases(session)
        if found != self.steps and self.chart is not None:
            self.chart.deleteLater()
            self.chart = None
        if found != self.steps and found:
            self.chart = _waterfall(found)
            self._column.insertWidget(1, self.chart, 1000)
        self.steps = found
        self.about.setText(self.summary())

    def summary(self) -> str:
        if not self.steps:
            return self.tr("No frame is decoded yet.")
        most = longest(self.steps)
        return self.tr("The first block was decoded after {0} s; {1} took longest ({2} s).").format(
            f"{self.steps[-1].end_s:.2f}", self.tr(most.title), f"{most.seconds:.2f}"
        )

    def table(self) -> Table:
        headers = [self.tr(text) for text in ("step", "begins s", "ends s", "takes s")]
        return headers, [
            [self.tr(one.title), f"{one.begin_s:.3f}", f"{one.end_s:.3f}", f"{one.seconds:.3f}"] for one in self.steps
        ]


def _waterfall(steps: tuple[Phase, ...]) -> Panels:
    """The steps in rows over the time; what draws the labs is loaded with the first one."""
    from app.views.labs.card import Panels
    from pipelines.labs.chart import Axis, Block, Chart, Gantt

    blocks = tuple(Block(row, one.begin_s, one.end_s, "", "") for row, one in enumerate(steps))
    names = tuple(f"{one.title} · {one.seconds:.2f} s" for one in steps)
    return Panels(Chart(Axis("", "s", low=0.0), Axis("", categories=names), (Gantt(blocks),)))
