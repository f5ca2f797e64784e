"""What would make it faster? Stages by what they could give, and under each the settings that attack it.

A change that was tried says what it does to the RTF. A slider says what a stage, and so the whole, would then take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6 import QtWidgets
from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal

from app.layout import NONE, lay_out
from app.model.faster import Candidate, Change, candidates, unchanged
from app.model.playhead import Snapshot
from app.model.recorded_settings import settings_at
from app.model.time_axis import TimeAxis
from app.style.plain_text import AT_RIGHT, Button, Elided, Wrapped, describe, set_tip
from app.style.theme import font
from app.views.table_twin import Table
from app.views.view import View
from profiler.analysis import whatif
from profiler.analysis.categories import PART_NAMES
from profiler.plain import milliseconds, percent, rtf_text

if TYPE_CHECKING:
    from app.model.document import RatioRow

WHAT, GIVES, RTF = range(3)  # Columns

CHANGE = Qt.ItemDataRole.UserRole

ROW = 22  # Height of a row in pixels
STEPS = 20  # Positions of the slider between no time and the time taken now


class CandidateTree(QtWidgets.QTreeWidget):
    """Stages by what they could give, each above the changes that attack it."""

    def __init__(self) -> None:
        super().__init__()
        self._named: list[tuple[str, ...]] = []  # Each stage and its changes, as they are shown
        self.setHeaderLabels([self.tr(text) for text in ("stage", "share × headroom", "lowest RTF")])
        self.setFrameShape(QtWidgets.QFrame.Shape.NoFrame)
        self.setEditTriggers(QtWidgets.QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setUniformRowHeights(True)
        self.setIndentation(14)
        self.header().setStretchLastSection(False)
        self.header().setSectionResizeMode(WHAT, QtWidgets.QHeaderView.ResizeMode.Stretch)
        self.setAllColumnsShowFocus(True)
        describe(self, self.tr("Stages by what they could give"))

    def show_candidates(
        self, candidates: Sequence[Candidate], rtf: float | None, text_of: Callable[[Change], str], stage: str
    ) -> None:
        """Show what each could give a run of this RTF, and what is said of its changes; go to the row of `stage`."""
        named = [(candidate.name, *(change.text for change in candidate.changes)) for candidate in candidates]
        with QSignalBlocker(self):
            if named != self._named:
                self._named = named
                self._rebuild(candidates)
            for at, candidate in enumerate(candidates):
                row = self.topLevelItem(at)
                assert row is not None
                share, gives = percent(candidate.share), percent(candidate.could_give)
                if candidate.headroom is not None:
                    gives = f"{share} × {percent(candidate.headroom)} = {gives}"
                for column, figure in ((GIVES, gives), (RTF, rtf_text(candidate.lowest(rtf)))):
                    row.setText(column, figure)
                    row.setTextAlignment(column, AT_RIGHT)
                for number, change in enumerate(candidate.changes):
                    below = row.child(number)
                    assert below is not None
                    below.setText(WHAT, f"{self.tr(change.title)}: {text_of(change)}")
            # Unless at one of the stage's changes; without a row of it, to the first.
            rows = self.findItems(stage, Qt.MatchFlag.MatchExactly)
            row = next(iter(rows), self.topLevelItem(0))
            if row is not None and row.text(WHAT) != self.stage():
                self.setCurrentItem(row)
        for column in (GIVES, RTF):
            self.headerItem().setTextAlignment(column, AT_RIGHT)
            self.resizeColumnToContents(column)

    def _rebuild(self, candidates: Sequence[Candidate]) -> None:
        """Make rows for other stages or changes; the change that is chosen stays so."""
        before = self.chosen()
        self.clear()
        for candidate in candidates:
            row = QtWidgets.QTreeWidgetItem(self, [candidate.name])
            row.setSizeHint(WHAT, QSize(0, ROW))
            row.setFont(WHAT, font(1.0, strong=True))
            for change in candidate.changes:
                below = QtWidgets.QTreeWidgetItem(row)
                below.setFirstColumnSpanned(True)
                below.setData(WHAT, CHANGE, change)
                if change == before:
                    self.setCurrentItem(below)
        self.expandAll()

    def chosen(self) -> Change | None:
        item = self.currentItem()
        change: Change | None = None if item is None else item.data(WHAT, CHANGE)
        return change

    def stage(self) -> str:
        """The stage that is chosen, or whose change is; empty without one."""
        item = self.currentItem()
        return "" if item is None else (item.parent() or item).text(WHAT)


class StageSlider(QtWidgets.QWidget):
    """Says in `predicted` what a run with faster stages would take; the slider makes the stage shown faster."""

    def __init__(self) -> None:
        super().__init__()
        self.stage, self.predicted = Elided(), Wrapped("")
        self.slider = QtWidgets.QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, STEPS)
        self.slider.setPageStep(STEPS // 4)
        set_tip(self.slider, self.tr("Predict the run with a faster stage; all other stages take what they took"))
        describe(self.slider, self.tr("Time that the stage would take"))
        lay_out(QtWidgets.QHBoxLayout(self), (self.stage, 1), (self.slider, 1), margins=NONE)
        self.factors: dict[str, float] = {}  # Multiple of their time that stages would take; 1 if not named
        self._name = ""
        self._start: whatif.Prediction | None = None
        self.slider.valueChanged.connect(self._scale)

    def _scale(self, position: int) -> None:
        self.factors[self._name] = position / STEPS
        self.show_stage(self._name, self._start)

    def show_stage(self, name: str, start: whatif.Prediction | None) -> None:
        """Show a stage of a run that took `start`, by the same function as `asrscope whatif --scale`."""
        self._name, self._start = name, start
        # The time between stages has no factor of its own.
        names = set() if start is None else {line.name for line in start.lines}
        factor = self.factors.get(name, 1.0)
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(STEPS * factor))
        self.slider.setEnabled(name in names)
        times = f"{factor:.2f}×"
        self.stage.set_full(self.tr("If {0} took {1}").format(name, times) if name else "", f"{name} {times}")
        faster = {stage: factor for stage, factor in self.factors.items() if factor < 1.0 and stage in names}
        self.predicted.setVisible(bool(faster))
        if start is None or not faster:
            return
        after = whatif.scaled(start, faster.items())
        stages = self.tr(" and ").join(f"{stage} {factor:.2f}×" for stage, factor in faster.items())
        gain = after.wall_ns / after.predicted_ns if after.predicted_ns else float("inf")
        text = self.tr("With {0}: RTF {1} → {2}, {3}× faster.")
        rtfs = rtf_text(after.rtf), rtf_text(after.predicted_rtf)
        self.predicted.setText(text.format(stages, *rtfs, f"{gain:.2f}"))


class FasterView(View):
    """Where a change could pay, what to change, and a way to try it."""

    id = "faster"
    title = "Faster"
    tried = Signal(object, object)  # Settings (key → value) to try, and what takes the outcome, a `RatioRow`

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.tree, self.what_if = CandidateTree(), StageSlider()
        self.try_it = Button(self.tr("Try it"), self._try_current)
        self.try_all = Button(self.tr("Try all"), self._try_next)
        set_tip(self.try_all, self.tr("One after the other, some seconds of the session's audio with and without each"))
        self.about = Wrapped("")
        row = lay_out(QtWidgets.QHBoxLayout(), (self.about, 1))
        for button in (self.try_it, self.try_all):
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        self.set_column((self.tree, 1), self.what_if, self.what_if.predicted, row)
        axis.stage_changed.connect(self._soon.start)
        self._candidates: tuple[Candidate, ...] = ()
        self._rtf: float | None = None
        self._outcomes: dict[tuple[str, str], RatioRow] = {}  # Ratio of times, by session and change
        for signal in (self.tree.currentItemChanged, self.tree.itemClicked):
            signal.connect(lambda *_: self._moved())
        self.tree.itemActivated.connect(lambda *_: self._try_current())
        self._show_choice()

    def draw(self, snapshot: Snapshot) -> None:
        desk = snapshot.desk
        config = settings_at(snapshot.session, desk.scope.last)
        self._model = self._candidates = candidates(desk, config)
        self._rtf = desk.rtf
        self.tree.show_candidates(self._candidates, desk.rtf, self._change_text, self.axis.stage or "")
        self._show_choice()
        self.set_note(
            self.tr("could give = share of the time × what is above the roof that binds"), self.tr("share × headroom")
        )

    def _outcome(self, change: Change) -> RatioRow | None:
        return None if self.snapshot is None else self._outcomes.get((str(self.snapshot.session.path), change.text))

    def _change_text(self, change: Change) -> str:
        """What a change does to the RTF where that is known, else why it would help."""
        outcome, why = self._outcome(change), self.tr(change.why)
        if outcome is None or self._rtf is None:
            return self.tr("{0} · not tried").format(why)
        low, high = outcome.ends or (outcome.ratio, outcome.ratio)
        rtfs = (rtf_text(self._rtf * ratio) for ratio in (1.0, outcome.ratio, low, high))
        return self.tr("RTF {0} → {1} ({2} – {3})").format(*rtfs)

    def clear(self) -> None:
        super().clear()
        self._candidates, self._rtf = (), None
        self.what_if.factors.clear()
        self.tree.show_candidates((), None, self._change_text, "")
        self._show_choice()

    def set_picture(self, on: bool) -> None:
        for part in (self.try_it, self.try_all, self.about, self.what_if):
            part.setVisible(not on)

    def _moved(self) -> None:
        self._show_choice()
        if stage := self.tree.stage():
            self.axis.choose_stage(stage)

    def _show_choice(self) -> None:
        shown, change = self.snapshot, self.tree.chosen()
        self.what_if.show_stage(self.tree.stage(), None if shown is None else unchanged(shown.desk))
        self.try_it.setEnabled(change is not None)
        self.try_all.setEnabled(self._untried() is not None)
        if change is None:
            self.about.setText(self.tr("Choose a change to try it on this session's audio, half a minute each."))
        else:
            self.about.setText(f"{self.tr(change.title)} ({change.text}): {self.tr(change.why)}.")

    def _try_current(self) -> None:
        self._try(self.tree.chosen(), lambda: None)

    def _untried(self) -> Change | None:
        changes = (change for candidate in self._candidates for change in candidate.changes)
        return next((change for change in changes if self._outcome(change) is None), None)

    def _try_next(self) -> None:
        """Try what is not tried, one after the other, until one is cancelled."""
        self._try(self._untried(), self._try_next)

    def _try(self, change: Change | None, then: Callable[[], None]) -> None:
        if change is None or self.snapshot is None:
            return
        path = str(self.snapshot.session.path)

        def take(outcome: RatioRow) -> None:
            self._outcomes[path, change.text] = outcome
            if self.snapshot is not None and str(self.snapshot.session.path) == path:
                self.draw(self.snapshot)
                then()

        self.tried.emit(dict(change.settings), take)

    def summary(self) -> str:
        if not self._candidates:
            return self.tr("No stage with known time yet.")
        first = self._candidates[0]
        text = self.tr("{0} could give most: at most {1} of the time.").format(first.name, percent(first.could_give))
        if first.largest is not None:
            text += " " + self.tr("Most of what is not arithmetic is {0}.").format(PART_NAMES[first.largest])
        if first.changes:
            names = ", ".join(self.tr(change.title) for change in first.changes)
            text += " " + self.tr("What would help: {0}.").format(names)
        return text

    def table(self) -> Table:
        time = self.by_unit("ms per frame", "ms per step")
        headers = ["stage", "change", time, "share", "headroom", "could give", "lowest RTF", "why"]
        rows: list[list[object]] = []
        for stage in self._candidates:
            shares = (stage.share, stage.headroom, stage.could_give)
            figures = (milliseconds(stage.ms), *map(percent, shares), rtf_text(stage.lowest(self._rtf)))
            rows.append([stage.name, "", *figures, ""])
            rows += [[stage.name, c.text, *[None] * 5, self._change_text(c)] for c in stage.changes]
        return [*map(self.tr, headers)], rows
