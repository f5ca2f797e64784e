"""The bar on top: run and stop, the live toggles, preset and device, the scope, RTF and WER."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QVBoxLayout, QWidget

from app.layout import REST, lay_out, muted, named, new_grid, styled
from app.model.pipeline import Pipeline, missing_file
from app.model.time_axis import TimeAxis
from app.style.icons import ButtonIcon
from app.style.plain_text import Button, Elided, Label, ToolButton, add_entry, describe, new_menu, set_tip
from app.style.theme import theme
from app.widgets import DropButton, Switch
from app.window.actions.actions import ActionButton, Registry
from app.window.actions.commands import SCOPES
from app.window.bars.live_toggle import LiveToggle
from pipelines.config import presets
from profiler.plain import clock, counted, rtf_text

if TYPE_CHECKING:
    from app.model.desk_snapshot import DeskSnapshot
    from app.model.scope import Scope


class PresetButton(DropButton):
    """Emits `chosen` with the name of the preset."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__(34)
        self._entries: dict[str, QAction] = {}
        self.choices = QMenu(self)
        self._offer(self.choices, "")
        for group in presets.groups():
            title = self.tr("{0} ({1})").format(self.tr(group), len(presets.names(group)))
            submenu = new_menu(title, self.choices)
            self.choices.addMenu(submenu)
            self._offer(submenu, group)
        self.clicked.connect(lambda _=False: self.choices.popup(self.mapToGlobal(self.rect().bottomLeft())))

    def _offer(self, menu: QMenu, group: str) -> None:
        menu.setToolTipsVisible(True)
        for name in presets.names(group):
            preset = presets.load(name)
            action = self._entries[name] = add_entry(menu, self.tr(preset.title), partial(self.chosen.emit, name))
            action.setCheckable(True)
            why = missing_file(preset.config)
            action.setEnabled(why is None)
            set_tip(action, why or self.tr(preset.description))

    def show_preset(
        self, preset: presets.Preset, waiting: presets.Preset | None = None, modified: bool = False
    ) -> None:
        """Show which one is chosen, whether settings differ from it, and which waits for the next run."""
        for name, entry in self._entries.items():
            entry.setChecked(name == (preset if waiting is None else waiting).name)
        title = self.tr("{0} (modified)") if modified else "{0}"
        title = title.format(self.tr(preset.title))
        tip = f"{title}: {self.tr(preset.description)}"
        if waiting is not None:
            tip = self.tr("{0}\nNext run: {1}").format(tip, self.tr(waiting.title))
            title = self.tr("next: {0}").format(self.tr(waiting.title))
        set_tip(self, tip)
        describe(self, self.tr("Preset: {0}").format(title))
        self.show_text(title)


RECORDING_WIDTHS = {True: 84, False: 64}  # Of the recorded duration, with the word REC where there is room for it
WIDE = 1480  # From this width on the title of the preset is whole; below it, it makes room for what the toggles did
NARROW = 1240  # Below this width the device, and what stands next to the figures, make room for the toggles' names
TIGHT = 960  # Below this width, a 4K screen's at double scale, the preset makes room for the toggles' names
BUTTON = QSize(34, 34)
CHIP_WIDTH, NARROW_CHIP_WIDTH = 170, 96
PRESET_WIDTHS = {WIDE: 210, NARROW: 132, 0: 110}  # Of the preset, from these widths of the bar on


class RecordedTime(Label):
    """The recorded duration, behind a dot; no text, no dot."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedWidth(RECORDING_WIDTHS[True])
        self.setIndent(14)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.text():
            with QPainter(self) as painter:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme().color("accent"))
                painter.drawEllipse(QPointF(5.0, self.height() / 2), 4.0, 4.0)


class Figure(QWidget):
    """One large figure with its name above it and a remark next to it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name, self._note = muted(name, 0.85), muted(size=0.85)
        self._value = named(styled(Label("–"), 1.95, strong=True), "big-figure")
        cells = new_grid(self, 7, 0)
        cells.addWidget(self._name, 0, 0)
        cells.addWidget(self._value, 1, 0)
        cells.addWidget(self._note, 1, 1, Qt.AlignmentFlag.AlignBottom)

    @property
    def value(self) -> str:
        return self._value.text()

    def show_value(self, value: str, note: str, tip: str, name: str = "") -> None:
        """Show a figure; `name`: another one than before."""
        self._name.setText(name or self._name.text())
        self._value.setText(value)
        self._note.setText(note)
        self._kept_wide()
        set_tip(self, tip)
        describe(self, f"{self._name.text()} {value} {note}")

    def show_note(self, shown: bool) -> None:
        """Show the note at the figure, or (where there is no room) its tool tip alone."""
        if shown == self._note.isHidden():
            self._note.setVisible(shown)
            self.setMinimumWidth(0)
            self._kept_wide()

    def _kept_wide(self) -> None:
        self.setMinimumWidth(max(self.minimumWidth(), self.sizeHint().width()))


SCOPE_ROOM, SCOPE_WIDTH = 26, 216  # Pixels for border and arrow of the button, and of the chip at most


class ScopeChip(QWidget):
    """Says what every figure is of: a click offers `choices`, the kinds of scope, × goes back."""

    left = Signal()  # Somebody wants the usual one again

    def __init__(self, choices: Sequence[QAction]) -> None:
        super().__init__(maximumWidth=SCOPE_WIDTH)
        self._scope: Scope | None = None
        self._direction = 0
        self._menu = new_menu(self.tr("Scope"), self)
        self._menu.addActions(list(choices))
        self.button = named(styled(DropButton(SCOPE_ROOM), 0.95, strong=True), "scope-chip")
        self.button.clicked.connect(lambda _=False: self._menu.popup(self.mapToGlobal(self.rect().bottomLeft())))
        self.away = named(ToolButton(), "table-toggle")
        self.away.setText("×")
        describe(self.away, self.tr("Back to the usual scope"))
        set_tip(self.away, self.tr("Back to the usual scope (Esc)"))
        self.away.clicked.connect(lambda _=False: self.left.emit())
        grid = new_grid(self, 1, 1)
        grid.addWidget(muted(self.tr("scope of all figures"), 0.85), 0, 0, 1, 2)
        grid.addWidget(self.button, 1, 0)
        grid.addWidget(self.away, 1, 1)
        grid.setColumnStretch(0, 1)
        self.show_scope(None, False)

    def sizeHint(self) -> QSize:
        """As wide as it may be: it must not move because its text changed."""
        return QSize(SCOPE_WIDTH, super().sizeHint().height())

    def show_scope(self, scope: Scope | None, chosen: bool) -> None:
        """Show a scope, or that there is none; `chosen`: by somebody, who can go back."""
        self._scope = scope
        self.button.setEnabled(scope is not None)
        self.away.setVisible(chosen)
        self._show()

    def show_direction(self, direction: int) -> None:
        """Say that the scope lies left (−1) or right (1) of what is in view, or (0) within it."""
        if direction != self._direction:
            self._direction = direction
            self._show()

    def _show(self) -> None:
        if self._scope is None:
            self.button.show_text("–")
            describe(self.button, self.tr("Scope: no session"))
            return
        text = self._scope.text
        self.button.show_text(text, "◂ " if self._direction < 0 else "", " ▸" if self._direction > 0 else "")
        frames = self.tr("{0} frames of 10 ms").format(self._scope.frames)
        tips = [self.tr("All figures are of this: {0}").format(text), frames]
        if self._direction:
            tips.append(self.tr("It lies outside of what is in view."))
        set_tip(self.button, "\n".join(tips))
        describe(self.button, self.tr("Scope: {0}").format(text))


class TopBar(QFrame):
    """Shows the toggles of the pipeline and the figures of the run; acts through the registry."""

    def __init__(self, pipeline: Pipeline, actions: Registry, axis: TimeAxis) -> None:
        super().__init__()
        named(self, "top-bar", bar=True)
        self._pipeline, self._axis = pipeline, axis
        self._recorded: float | None = None
        self._of_lab = False

        self.run = named(self._button(actions["run.start"], "play", "on_accent"), go=True)
        self.stop = self._button(actions["run.stop"], "stop", "text")
        self.recording = RecordedTime()

        self.toggles = [LiveToggle() for _ in pipeline.toggles.places()]

        self.preset = PresetButton()
        self.device = styled(Elided(), 0.9, muted=True)
        chooser = lay_out(QVBoxLayout(), self.preset, self.device, spacing=1)

        self.scope = ScopeChip([actions[name] for name in SCOPES])
        self.rtf, self.wer = Figure(self.tr("RTF")), Figure(self.tr("WER"))
        switches = [part for toggle in self.toggles for part in (toggle, 14)]
        lay_out(
            QHBoxLayout(self),
            *(self.run, self.stop, 4, self.recording, 6, *switches),
            *(chooser, 10, REST, (self.scope, 1), 10, self.rtf, 14, self.wer),
            spacing=8,
            margins=(14, 8, 16, 8),
        )

        for changed in (pipeline.changed, pipeline.replaced, pipeline.toggles.readiness_changed):
            changed.connect(lambda *_: self.refresh())
        self.refresh()
        self.show_desk(None)
        self.show_recording(None)

    def _button(self, action: QAction, shape: str, ink: str) -> Button:
        button = ActionButton(action)
        button.setFixedSize(BUTTON)
        button.setIconSize(QSize(16, 16))
        ButtonIcon(button, shape, ink)
        return button

    def refresh(self) -> None:
        line = self._pipeline
        for widget, sharing in zip(self.toggles, line.toggles.places(), strict=True):
            widget.show_toggles(sharing)
        waiting = line.preset if self._of_lab else line.waiting
        self.preset.show_preset(line.preset_shown, waiting, line.differs())
        threads = counted(int(line.value("threads")), self.tr("thread"), self.tr("threads"))
        self.device.set_full("" if self._of_lab else f"{str(line.value('device')).upper()} · {threads}")

    def show_lab(self, shown: bool) -> None:
        """Show that the session is a lab's, so that preset and device are not its own but the next run's."""
        if shown != self._of_lab:
            self._of_lab = shown
            self.refresh()

    def show_recording(self, seconds: float | None) -> None:
        """Show how much audio is recorded, or that nothing is; NaN: that a run is recorded which is not shown."""
        wide = self.width() >= WIDE
        self._recorded = seconds
        self.recording.setVisible(seconds is not None or wide)
        self.recording.setFixedWidth(RECORDING_WIDTHS[wide])
        if seconds is None:
            text, name = "", self.tr("not recording")
        elif math.isnan(seconds):
            text, name = "REC", self.tr("recording a run that is not shown")
        else:  # the dot says as much as the word where there is little room
            since = clock(seconds)
            text, name = f"REC {since}" if wide else since, self.tr("recording, {0}").format(since)
        self.recording.setText(text)
        describe(self.recording, name)

    def show_desk(self, desk: DeskSnapshot | None) -> None:
        """Show scope, RTF, WER and what the toggles did, or that there is nothing to show."""
        chosen = self._axis.selected is not None or self._axis.scope is not None
        self.scope.show_scope(None if desk is None else desk.scope, desk is not None and chosen)
        for widget in self.toggles:
            if widget.toggle is None or desk is None:
                widget.show_effect(None)
            else:
                widget.show_effect(desk.pairs.get(widget.toggle.keys), desk.arm)
        if desk is None:
            self.rtf.show_value("–", "", self.tr("Processing time / audio time"))
            self.wer.show_value("–", "", self.tr("Word error rate"))
            return
        rtf, whole = rtf_text(desk.rtf), rtf_text(desk.rtf_with)
        tip = self.tr("Processing time / audio time, {0}; with the time that other programs took: {1}")
        note = self.tr("{0} with\nothers").format(whole) if whole != rtf else ""
        self.rtf.show_value(rtf, note, tip.format(desk.scope.text, whole))
        self._show_words(desk)

    def _show_words(self, desk: DeskSnapshot) -> None:
        if (rate := desk.errors.rate) is None:
            reason = self.tr("No word of a finished utterance with a transcript is in the scope yet")
            self.wer.show_value("–", "", reason)
            return
        wrong = counted(desk.errors.errors, self.tr("error"), self.tr("errors"))
        words = counted(desk.errors.words, *desk.errors.unit)
        note, of = self.tr("{0} in\n{1}").format(wrong, words), desk.transcribed
        tip = self.tr("{0} in {1} of finished utterances, {2}").format(wrong, words, desk.scope.text)
        if desk.errors.characters:
            tip += self.tr("; a reference without spaces between words is compared by its characters (CER)")
        if of.utterances < of.of:
            note += " *"
            tip += self.tr("; {0} of {1} utterances have a transcript").format(of.utterances, of.of)
        if desk.pair is not None and desk.pair.words:
            note = self.tr("{0}\nof {1}").format(*desk.pair.words.split(self.tr(" of "), 1))
            tip += "; " + self.tr("the same words before and after: {0}").format(desk.pair.words)
        self.wer.show_value(f"{100 * rate:.1f} %", note, tip, desk.errors.name)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = self.width() >= NARROW
        self.device.setVisible(wide)
        self.preset.setVisible(self.width() >= TIGHT)
        self.preset.setFixedWidth(next(px for least, px in PRESET_WIDTHS.items() if self.width() >= least))
        self.scope.setMinimumWidth(CHIP_WIDTH if wide else NARROW_CHIP_WIDTH)
        for figure in (self.rtf, self.wer):
            figure.show_note(wide)
        self.show_recording(self._recorded)


SHOWN_FROM, SHOWN_TO = 0.2, 0.15  # Share of the wall time from which, and up to which, the banner is shown


class OtherPrograms(QFrame):
    """One line with a switch."""

    def __init__(self) -> None:
        super().__init__()
        named(self, "other-programs", bar=True)
        self.taken = styled(Label(), 0.92, strong=True)
        self.switch = Switch(small=True)
        self.switch.setChecked(True)
        describe(self.switch, self.tr("Show the time of other programs in the charts"))
        about = muted(self.tr("All figures are without them; compare ratios only."), 0.92)
        shown = muted(self.tr("show them in the charts"), 0.92)
        shown.setBuddy(self.switch)
        parts = (self.taken, about, REST, shown, self.switch)
        lay_out(QHBoxLayout(self), *parts, spacing=12, margins=(14, 3, 16, 3))
        self.hide()

    def show_share(self, share: float) -> None:
        """Say what share of the wall time of the scope, 0…1, they took."""
        shown = share > (SHOWN_TO if not self.isHidden() else SHOWN_FROM)
        if shown:
            self.taken.setText(self.tr("Other programs took {0} % of the processor.").format(f"{100 * share:.0f}"))
        self.setVisible(shown)
