"""The bar on top: run and stop, the live toggles, preset and device, RTF and WER."""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QAction, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from app.layout import REST, lay_out, muted
from app.model.effects import Effect
from app.model.figures import Figures, rtf_text
from app.model.pipeline import Pipeline
from app.style.icons import ButtonIcon
from app.style.plain_text import Button, Label, describe, set_tip
from app.style.stylesheet import restyle
from app.style.theme import font, theme
from app.widgets import Elided
from app.window.actions.actions import ActionButton, Registry
from app.window.bars.live_toggle import LiveToggle
from app.window.form.preset_button import PresetButton
from profiler.plain import clock, counted

RECORDING_WIDTHS = {True: 84, False: 64}
"""Of the recorded duration, with the word REC where there is room for it."""

NARROW = 1240
"""Below this width the long title of the preset and the device make room for the figures."""

TIGHT = 960
"""Below this width, a 4K screen's at double scale, what the figures are of makes room for the toggles' names."""

BUTTON = QSize(34, 34)
PRESET_WIDTH, NARROW_PRESET_WIDTH, TIGHT_PRESET_WIDTH = 210, 150, 120


class Recording(Label):
    """The recorded duration, behind a red dot; no text, no dot."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedWidth(RECORDING_WIDTHS[True])
        self.setIndent(14)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw text and dot."""
        super().paintEvent(event)
        if self.text():
            with QPainter(self) as painter:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme().color("danger"))
                painter.drawEllipse(QPointF(5.0, self.height() / 2), 4.0, 4.0)


class Figure(QWidget):
    """One large figure with its name above it and its scope next to it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = muted(name, 0.85)
        self._value = Label("–")
        self._value.setObjectName("big-figure")
        self._value.setFont(font(1.95, strong=True))
        self._note = muted(size=0.85)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(7)
        grid.setVerticalSpacing(0)
        grid.addWidget(self._name, 0, 0)
        grid.addWidget(self._value, 1, 0)
        grid.addWidget(self._note, 1, 1, Qt.AlignmentFlag.AlignBottom)

    @property
    def value(self) -> str:
        """The figure as shown."""
        return self._value.text()

    def show_value(self, value: str, note: str, tip: str, pale: bool = False, name: str = "") -> None:
        """Show a figure; `pale`: one that must not be held against what stood there before; `name`: another one."""
        self._name.setText(name or self._name.text())
        self._value.setText(value)
        if self._value.objectName() != (name := "pale-figure" if pale else "big-figure"):
            self._value.setObjectName(name)
            restyle(self._value)
        self._note.setText(note)
        self._kept_wide()
        set_tip(self, tip)
        describe(self, f"{self._name.text()} {value} {note}")

    def show_scope(self, shown: bool) -> None:
        """Show the note at the figure, or (where there is no room) its tool tip alone."""
        if shown == self._note.isHidden():
            self._note.setVisible(shown)
            self.setMinimumWidth(0)
            self._kept_wide()

    def _kept_wide(self) -> None:
        """Keep the greatest width so far: the neighbours would move with every digit."""
        self.setMinimumWidth(max(self.minimumWidth(), self.sizeHint().width()))


class TopBar(QFrame):
    """Shows the toggles of the pipeline and the figures of the run; acts through the registry."""

    def __init__(self, pipeline: Pipeline, actions: Registry) -> None:
        super().__init__()
        self.setObjectName("top-bar")
        self.setProperty("bar", True)
        self._pipeline = pipeline
        self._recorded: float | None = None
        self._of_lab = False

        self.run = self._button(actions["run.start"], "play", "on_accent")
        self.run.setProperty("go", True)
        self.stop = self._button(actions["run.stop"], "stop", "text")
        self.recording = Recording()

        self.toggles = [LiveToggle() for _ in pipeline.places()]

        self.preset = PresetButton()
        self.device = Elided()
        self.device.setObjectName("muted")
        self.device.setFont(font(0.9))
        chooser = lay_out(QVBoxLayout(), self.preset, self.device, spacing=1)

        self.rtf = Figure(self.tr("RTF"))
        self.wer = Figure(self.tr("WER"))
        switches = [part for toggle in self.toggles for part in (toggle, 14)]
        lay_out(
            QHBoxLayout(self),
            *(self.run, self.stop, 4, self.recording, 6, *switches),
            *(chooser, 10, REST, self.rtf, 14, self.wer),
            spacing=8,
            margins=(14, 8, 16, 8),
        )

        pipeline.changed.connect(lambda *_: self.refresh())
        pipeline.replaced.connect(self.refresh)
        self.refresh()
        self.show_figures(None)
        self.show_recording(None)

    def _button(self, action: QAction, shape: str, ink: str) -> Button:
        button = ActionButton(action)
        button.setFixedSize(BUTTON)
        button.setIconSize(QSize(16, 16))
        ButtonIcon(button, shape, ink)
        return button

    def refresh(self) -> None:
        """Show toggles, preset and device according to the settings."""
        line = self._pipeline
        for widget, sharing in zip(self.toggles, line.places(), strict=True):
            widget.show_toggles(sharing)
        waiting = line.preset if self._of_lab else line.waiting
        self.preset.show_preset(line.preset_shown, waiting, line.differs())
        if self._of_lab:
            self.device.set_full("")
            return
        parts = [str(line.value("device")).upper()]
        threads = int(line.value("threads"))
        parts.append(counted(threads, self.tr("thread"), self.tr("threads")))
        self.device.set_full(" · ".join(parts))

    def show_lab(self, shown: bool) -> None:
        """Show that the session is a lab's, so that preset and device are not its own but the next run's."""
        if shown != self._of_lab:
            self._of_lab = shown
            self.refresh()

    def show_effects(self, effect_of: Callable[[frozenset[str]], Effect | None]) -> None:
        """Show at each toggle what flipping it did: `effect_of` the settings that it changes."""
        for widget in self.toggles:
            toggle = widget.toggle
            widget.show_effect(None if toggle is None else effect_of(toggle.keys))

    def show_recording(self, seconds: float | None) -> None:
        """Show how much audio is recorded, or that nothing is; NaN: that a run is recorded which is not shown."""
        wide = self.width() >= NARROW
        self._recorded = seconds
        self.recording.setVisible(seconds is not None or wide)
        self.recording.setFixedWidth(RECORDING_WIDTHS[wide])
        if seconds is None:
            self.recording.setText("")
            describe(self.recording, self.tr("not recording"))
            return
        if math.isnan(seconds):
            self.recording.setText("REC")
            describe(self.recording, self.tr("recording a run that is not shown"))
            return
        since = clock(seconds)
        # The dot says as much where there is little room.
        self.recording.setText(f"REC {since}" if wide else since)
        describe(self.recording, self.tr("recording, {0}").format(since))

    def show_figures(self, shown: Figures | None) -> None:
        """Show RTF and WER, or that there is nothing to show."""
        if shown is None:
            self.rtf.show_value("–", "", self.tr("Processing time / audio time"))
            self.wer.show_value("–", "", self.tr("Word error rate"))
            return
        whole = rtf_text(shown.rtf_whole)
        tip = self.tr("Processing time / audio time, {0}; over the whole range shown: {1}")
        self.rtf.show_value(rtf_text(shown.rtf), self.tr(shown.scope), tip.format(self.tr(shown.scope), whole))
        rate = shown.errors.rate
        if rate is None:
            reason = self.tr("No utterance with a transcript is finished under these settings yet")
            if shown.of_selection:
                reason = self.tr("No word of a finished utterance is selected")
            self.wer.show_value("–", "", reason)
            return
        wrong = counted(shown.errors.errors, self.tr("error"), self.tr("errors"))
        words = counted(shown.errors.words, *shown.errors.unit)
        counts = self.tr("{0} in {1} of the utterances finished under these settings")
        if shown.of_selection:
            counts = self.tr("{0} in {1} of the selection")
        tip, of = counts.format(wrong, words), shown.transcribed
        if shown.errors.characters:
            tip += self.tr("; a reference without spaces between words is compared by its characters (CER)")
        if of.utterances < of.of:
            words += " *"
            tip += self.tr("; {0} of {1} utterances have a transcript").format(of.utterances, of.of)
        if shown.unlike:
            words += "\n" + self.tr("{0} of {1} differ").format(shown.unlike, shown.scored)
            tip += self.tr(
                "; {0} of these {1} utterances differ from those decoded with the settings before: the rate goes with "
                "the speech, too"
            ).format(shown.unlike, shown.scored)
        elif shown.before is not None and shown.before.rate is not None:
            words += "\n" + self.tr("before {0} %").format(f"{100 * shown.before.rate:.1f}")
            tip += "; " + self.tr("the same words with the settings before: {0} errors").format(shown.before.errors)
        self.wer.show_value(f"{100 * rate:.1f} %", words, tip, bool(shown.unlike), shown.errors.name)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide what matters least if there is little room."""
        super().resizeEvent(event)
        wide = self.width() >= NARROW
        self.device.setVisible(wide)
        tight = self.width() < TIGHT
        narrow = TIGHT_PRESET_WIDTH if tight else NARROW_PRESET_WIDTH
        self.preset.setFixedWidth(PRESET_WIDTH if wide else narrow)
        for figure in (self.rtf, self.wer):
            figure.show_scope(not tight)
        self.show_recording(self._recorded)
