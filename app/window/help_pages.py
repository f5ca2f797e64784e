"""The pages of the Help menu: the words that the window uses, what this version consists of, and what works here.

Each is a table whose rows can be copied. What works here is found out by `asrscope doctor` in a process of its own,
since it loads what the window must not.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QCoreApplication, QSize
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from app.layout import REST, lay_out
from app.model.processes.command import Command
from app.style.plain_text import Button, Wrapped, set_title
from app.views.table_twin import TableTwin
from profiler.process import children

tr = partial(QCoreApplication.translate, "Help")

SIZE: Final = QSize(760, 520)

TERMS: Final = (  # Words that the window uses, with their meaning
    ("frame", "10 ms of speech; every figure per frame is of so much audio"),
    ("RTF", "real-time factor: processing time / audio time; below 1 is faster than real time"),
    ("WER", "word error rate: words wrong, missing and inserted / words of the reference; each utterance once"),
    ("senone", "a tied state of the acoustic model, which is given a score in every frame"),
    ("Gaussian", "one density of a mixture; Gaussian selection computes the likely ones alone"),
    ("token", "a hypothesis of the search at one frame; beam and max active say how many stay"),
    ("block", "frames that are scored together; the first of them waits for the last"),
    ("arithmetic", "part of a stage's time: its operations at the best rate measured on this machine"),
    ("instructions", "part of a stage's time: what it computes beyond the arithmetic"),
    ("memory bandwidth", "part of a stage's time: waiting for data read in order"),
    ("memory latency", "part of a stage's time: waiting for scattered accesses"),
    ("call overhead", "part of a stage's time: what calls take, whatever they compute"),
    ("other programs", "time in which another program had the processor (preempted)"),
    ("throttled", "time in which the CPU limit of the container was used up, or the host had the processor"),
    ("not attributed", "time that neither law nor measurement accounts for"),
    ("verdict", "the largest part of a stage's own time; mixed where intervals overlap"),
    ("grade A", "counted by the hardware"),
    ("grade B", "measured, with hot replays"),
    ("grade C", "time measured, its parts by the cost law alone"),
    ("grade D", "an estimate: a roof was not measured"),
    ("roofline", "what a stage reaches, beside what arithmetic and memory allow on this machine"),
    ("baseline", "the same speech with the settings before the last change"),
    ("A/B", "the same speech decoded with two settings in turn, until it is decided"),
    ("session", "the file into which a run is recorded, and from which everything is shown"),
)


class Page(QDialog):
    """A table of a few columns under a sentence."""

    def __init__(self, title: str, lead: str, headers: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        set_title(self, title)
        self.resize(SIZE)
        self.lead = Wrapped(lead)
        self._headers = tuple(headers)
        self.table = TableTwin(title)
        below = lay_out(QHBoxLayout(), REST, Button(tr("Close"), self.accept))
        lay_out(QVBoxLayout(self), self.lead, (self.table, 1), below)

    def show_rows(self, rows: Sequence[Sequence[str]]) -> None:
        self.table.cells.replace(self._headers, rows)
        self.table.fit_columns()


def terms(parent: QWidget) -> Page:
    page = Page(tr("Terms"), tr("What the words in the window mean."), ("term", "meaning"), parent)
    page.show_rows([(tr(word), tr(meaning)) for word, meaning in TERMS])
    return page


def about(parent: QWidget) -> Page:
    from profiler.machine import describe as machine

    own = machine.own_version()
    lead = tr("asrscope {0}: where the time of a speech recogniser goes.").format(own or "")
    page = Page(tr("About asrscope"), lead, ("what", "version"), parent)
    page.show_rows(list(machine.versions().items()))
    return page


class Doctor(Page):
    """What works on this machine, as soon as it has been found out."""

    def __init__(self, parent: QWidget) -> None:
        headers = (tr("what"), tr("works"), tr("found"))
        super().__init__(tr("What works here"), tr("Trying everything …"), headers, parent)
        words = children.python("-m", "app.cli.main", "doctor", "--json")
        self._command = Command(words, self)
        self._command.ended.connect(self._show_report)
        self._command.start()

    def _show_report(self, printed: bytes, _why: str) -> None:
        try:
            report = json.loads(printed)
            checks = [(c["name"], c["works"], c["detail"]) for c in report["checks"]]
        except (ValueError, KeyError, TypeError):
            self.lead.setText(tr("The command ended without saying what works."))
            return
        self.show_rows([(name, tr("yes") if works else tr("no"), detail) for name, works, detail in checks])
        missing = tr("Something required is missing.")
        ready = tr("Everything required is available.")
        self.lead.setText(ready if report.get("ready") is True else missing)

    def done(self, result: int) -> None:
        self._command.kill()
        super().done(result)


PAGES: Final[Mapping[str, Callable[[QWidget], Page]]] = {"terms": terms, "doctor": Doctor, "about": about}
