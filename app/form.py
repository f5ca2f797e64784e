"""The pipeline as a form, generated from the configuration tree in the order of the data.

Nothing here names a setting: a new one in the tree appears under its layer with the widget of its
type, its range, unit and help. A dot marks what can change while a run goes on; what was changed
but waits for the next run says so.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.audio_choice import AudioChoice
from app.pipeline import Pipeline
from app.theme import font, theme
from app.widgets import ChoiceBox, Elided, RealBox, Switch, WholeBox
from pipelines.config import Option, Value

LONGEST_SUFFIX = 7
"""Longer units stand in the tool tip, not in the field."""

FIELD_WIDTH = 98
UNBOUNDED = 2_000_000_000


class Dot(QWidget):
    """The mark of a setting that can change while a run goes on."""

    def __init__(self, live: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._live = live
        self.setFixedSize(QSize(8, 12))
        if live:
            self.setToolTip(self.tr("changes while it runs"))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the dot, or nothing."""
        if not self._live:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme().color("accent"))
        painter.drawEllipse(QPointF(3.5, 6.0), 2.6, 2.6)
        painter.end()


class Field(QWidget):
    """One setting: dot, title, the widget of its type, and the mark *on next run*."""

    edited = Signal(str, object)

    def __init__(self, option: Option, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.option = option
        self.title = QLabel(self.tr(option.title))
        self.title.setWordWrap(True)
        self.waiting = QLabel(self.tr("on next run"))
        self.waiting.setObjectName("muted")
        self.waiting.setFont(font(0.85))
        self.waiting.hide()
        self.editor = self._make_editor()
        self.editor.setObjectName(f"option-{option.key}")
        self.editor.setAccessibleName(self.tr(option.title))
        self.editor.setAccessibleDescription(option.help)
        self.title.setBuddy(self.editor)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addStretch(1)
        words.addWidget(self.title)
        words.addWidget(self.waiting)
        words.addStretch(1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(Dot(option.live))
        row.addLayout(words, 1)
        row.addWidget(self.editor)
        self.setToolTip(self._tip())

    def _tip(self) -> str:
        option = self.option
        parts = [f"<b>{option.title}</b><br>{option.help}"]
        if option.minimum is not None and option.maximum is not None:
            bounds = f"{option.minimum:g} … {option.maximum:g} {option.unit}".strip()
            parts.append(self.tr("Range: {0}").format(bounds))
        elif option.unit:
            parts.append(self.tr("Unit: {0}").format(option.unit))
        live = self.tr("changes while it runs")
        parts.append(live if option.live else self.tr("is taken at the next run"))
        parts.append(f"<code>--set {option.key}={option.default}</code>")
        return "<br>".join(parts)

    def _make_editor(self) -> QWidget:
        option = self.option
        suffix = f" {option.unit}" if 0 < len(option.unit) <= LONGEST_SUFFIX else ""
        if option.type == "bool":
            switch = Switch(small=True)
            switch.toggled.connect(self._edited)
            return switch
        if option.type == "choice":
            choice = ChoiceBox()
            for value in option.choices:
                choice.addItem(str(value), value)
            choice.setEnabled(len(option.choices) > 1)
            choice.activated.connect(lambda index: self._edited(choice.itemData(index)))
            choice.setFixedWidth(FIELD_WIDTH)
            return choice
        if option.type == "int":
            whole = WholeBox()
            whole.setRange(
                int(-UNBOUNDED if option.minimum is None else option.minimum),
                int(UNBOUNDED if option.maximum is None else option.maximum),
            )
            whole.set_unit(suffix)
            whole.valueChanged.connect(self._edited)
            whole.setFixedWidth(FIELD_WIDTH)
            return whole
        if option.type == "float":
            real = RealBox()
            real.setRange(
                -UNBOUNDED if option.minimum is None else option.minimum,
                UNBOUNDED if option.maximum is None else option.maximum,
            )
            real.setSuffix(suffix)
            real.valueChanged.connect(self._edited)
            real.setFixedWidth(FIELD_WIDTH)
            return real
        line = QLineEdit()
        line.editingFinished.connect(lambda: self._edited(line.text()))
        line.setFixedWidth(FIELD_WIDTH)
        return line

    def _edited(self, value: Value) -> None:
        self.edited.emit(self.option.key, value)

    def show_value(self, value: Value) -> None:
        """Show a value without telling anybody."""
        editor = self.editor
        blocked = editor.blockSignals(True)
        if isinstance(editor, Switch):
            editor.setChecked(bool(value))
            editor.update()
        elif isinstance(editor, ChoiceBox):
            editor.setCurrentIndex(editor.findText(str(value)))
        elif isinstance(editor, WholeBox):
            editor.setValue(int(value))
        elif isinstance(editor, RealBox):
            editor.setValue(float(value))
        elif isinstance(editor, QLineEdit):
            editor.setText(str(value))
        editor.blockSignals(blocked)

    def show_waiting(self, waits: bool) -> None:
        """Mark that the value takes effect only with the next run."""
        self.waiting.setVisible(waits)

    def show_acting(self, acts: bool) -> None:
        """Dim the title when the switch that this setting hangs on is off."""
        self.title.setObjectName("" if acts else "muted")
        self.title.style().unpolish(self.title)
        self.title.style().polish(self.title)


class PipelineForm(QFrame):
    """The card at the left: speech, then every setting grouped by layer."""

    choose_audio = Signal()

    def __init__(self, pipeline: Pipeline, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("pipeline-form")
        self.setProperty("card", True)
        self.setMinimumWidth(224)
        self.pipeline = pipeline
        self.fields: dict[str, Field] = {}

        title = QLabel(self.tr("Pipeline"))
        title.setFont(font(1.06, strong=True))
        self._preset = Elided()
        self._preset.setObjectName("card-note")
        self._preset.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        header = QHBoxLayout()
        header.setContentsMargins(0, 0, 8, 0)
        header.addWidget(title)
        header.addWidget(self._preset, 1)

        self.speech = QPushButton(self.tr("choose…"))
        self.speech.setFixedWidth(FIELD_WIDTH)
        self.speech.setAccessibleName(self.tr("Speech to decode"))
        self.speech.clicked.connect(lambda _=False: self.choose_audio.emit())

        rows = QWidget()
        rows.setObjectName("scrolled")
        column = QVBoxLayout(rows)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(5)
        layer = None
        for option in pipeline.options:
            if option.layer != layer:
                self._add_layer(column, option.layer, first=layer is None)
                if layer is None:
                    column.addLayout(self._speech_row())
                layer = option.layer
            field = Field(option)
            field.edited.connect(pipeline.set)
            self.fields[option.key] = field
            column.addWidget(field)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(rows)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.viewport().setAutoFillBackground(False)

        legend = QHBoxLayout()
        legend.setSpacing(6)
        legend.addWidget(Dot(True))
        changes = QLabel(self.tr("changes while it runs"))
        changes.setObjectName("muted")
        legend.addWidget(changes, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 9, 6, 10)
        layout.setSpacing(6)
        layout.addLayout(header)
        layout.addWidget(scroll, 1)
        layout.addLayout(legend)

        pipeline.changed.connect(self._one_changed)
        pipeline.replaced.connect(self.refresh)
        self.refresh()

    def _add_layer(self, column: QVBoxLayout, name: str, *, first: bool) -> None:
        label = QLabel(self.tr(name).upper())
        label.setObjectName("form-layer")
        label.setFont(font(0.82, strong=True))
        label.setIndent(0)
        column.addSpacing(2 if first else 8)
        column.addWidget(label)

    def _speech_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(Dot(False))
        row.addWidget(QLabel(self.tr("Speech")), 1)
        row.addWidget(self.speech)
        return row

    def show_speech(self, audio: AudioChoice | None) -> None:
        """Show what the next run decodes."""
        if audio is None:
            text, tip = self.tr("choose…"), self.tr("No speech chosen yet")
        elif audio.bundled:
            text = self.tr("{0} voices").format(audio.files)
            tip = self.tr("Bundled synthetic voices")
        else:
            one = audio.files == 1
            text = Path(audio.paths[0]).name if one else self.tr("{0} files").format(audio.files)
            tip = "\n".join(audio.paths)
        room = FIELD_WIDTH - 24
        elide = self.speech.fontMetrics().elidedText
        self.speech.setText(elide(text, Qt.TextElideMode.ElideMiddle, room))
        self.speech.setToolTip(tip)

    def refresh(self) -> None:
        """Show every value anew."""
        for key, field in self.fields.items():
            field.show_value(self.pipeline.value(key))
        self._refresh_marks()

    def _one_changed(self, key: str, value: Value) -> None:
        if key in self.fields:
            self.fields[key].show_value(value)
        self._refresh_marks()

    def _refresh_marks(self) -> None:
        for key, field in self.fields.items():
            field.show_waiting(self.pipeline.waits(key))
            switch = field.option.switched_by
            field.show_acting(not switch or bool(self.pipeline.value(switch)))
        name = self.pipeline.preset.name
        changed = self.tr("{0}, changed") if self.pipeline.differs() else "{0}"
        self._preset.set_full(changed.format(name))
