"""The pipeline as a form, generated from the configuration tree in pipeline order.

Nothing here names a setting: a new one in the tree appears under its layer with the widget of its
type, its range, unit and help. A dot marks what can change during a run; a change that
waits for the next run says so. Settings that cannot act with the others are folded away under
the heading of their layer, and say why when unfolded.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QEnterEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.model.audio_choice import AudioChoice
from app.model.pipeline import Pipeline
from app.style.keys import ToolButton
from app.style.plain_text import Button, Label, describe, set_tip
from app.style.theme import font
from app.widgets import Elided
from app.window.form.fields import FIELD_WIDTH, Dot, Field
from pipelines.config import Value


class Layer(QWidget):
    """A heading and its settings; those that cannot act are folded away behind a small button."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.fields: list[Field] = []
        label = Label(self.tr(name).upper())
        label.setObjectName("form-layer")
        label.setFont(font(0.82, strong=True))
        label.setIndent(0)
        self.more = ToolButton()
        self.more.setObjectName("form-more")
        self.more.setCheckable(True)
        self.more.setFont(font(0.82))
        self.more.setCursor(Qt.CursorShape.PointingHandCursor)
        self.more.toggled.connect(lambda _: self.fold())
        self.more.hide()
        heading = QHBoxLayout()
        heading.setSpacing(0)
        heading.addWidget(label, 1)
        heading.addWidget(self.more)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 8, 0, 0)
        self.column.setSpacing(5)
        self.column.addLayout(heading)

    def add(self, field: Field) -> None:
        """Append a setting."""
        self.fields.append(field)
        self.column.addWidget(field)

    def fold(self) -> None:
        """Show what can act, and the rest on request."""
        shown = self.more.isChecked()
        idle = [field for field in self.fields if field.obstacle is not None]
        for field in self.fields:
            field.setVisible(field.obstacle is None or shown)
        self.more.setVisible(bool(idle))
        self.more.setText(self.tr("{0} idle {1}").format(len(idle), "▴" if shown else "▾"))
        tip = self.tr("No effect with the other settings: {0}")
        names = ", ".join(field.title.text() for field in idle)
        set_tip(self.more, tip.format(names))
        describe(self.more, tip.format(names))


class PipelineForm(QFrame):
    """The card on the left: speech, then every setting by layer."""

    choose_audio = Signal()
    looked_at = Signal()

    def __init__(self, pipeline: Pipeline, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("pipeline-form")
        self.setProperty("card", True)
        self.setMinimumWidth(224)
        self.pipeline = pipeline
        self.fields: dict[str, Field] = {}

        title = Label(self.tr("Pipeline"))
        title.setFont(font(1.06, strong=True))
        self._preset = Elided()
        self._preset.setObjectName("card-note")
        self._preset.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        header = QHBoxLayout()
        header.setContentsMargins(0, 0, 8, 0)
        header.addWidget(title)
        header.addWidget(self._preset, 1)

        self.speech = Button(self.tr("choose…"))
        self.speech.setFixedWidth(FIELD_WIDTH)
        describe(self.speech, self.tr("Speech to decode"))
        self.speech.clicked.connect(lambda _=False: self.choose_audio.emit())

        rows = QWidget()
        rows.setObjectName("scrolled")
        column = QVBoxLayout(rows)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(5)
        self.layers: dict[str, Layer] = {}
        for option in pipeline.options:
            layer = self.layers.get(option.layer)
            if layer is None:
                layer = self.layers[option.layer] = Layer(option.layer)
                if len(self.layers) == 1:
                    layer.column.addLayout(self._speech_row())
                column.addWidget(layer)
            field = Field(option)
            field.edited.connect(pipeline.set)
            self.fields[option.key] = field
            layer.add(field)
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
        changes = Label(self.tr("can change during a run"))
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
        pipeline.absent_changed.connect(self._refresh_marks)
        self.refresh()

    def enterEvent(self, event: QEnterEvent) -> None:
        """The user may want to choose a device soon."""
        super().enterEvent(event)
        self.looked_at.emit()

    def _speech_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(Dot(False))
        row.addWidget(Label(self.tr("Speech")), 1)
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
        set_tip(self.speech, tip)

    def refresh(self) -> None:
        """Update every value."""
        for key, field in self.fields.items():
            field.show_value(self.pipeline.value(key))
        self._refresh_marks()

    def _one_changed(self, key: str, value: Value) -> None:
        if key in self.fields:
            self.fields[key].show_value(value)
        self._refresh_marks()

    def _refresh_marks(self) -> None:
        pipeline = self.pipeline
        for key, field in self.fields.items():
            option = field.option
            sentence = pipeline.obstacle(key)
            choices = {c: why for c in option.choices if (why := pipeline.obstacle(key, c))}
            chosen = choices.get(pipeline.value(key), "") if sentence is None else ""
            field.show_obstacle(sentence, pipeline.condition(option) if sentence else chosen)
            field.show_choices(choices)
            field.show_waiting(pipeline.waits(key))
            switch = option.switched_by
            field.show_acting(not switch or bool(pipeline.value(switch)))
        for layer in self.layers.values():
            layer.fold()
        name = pipeline.preset.name
        changed = self.tr("{0}, changed") if pipeline.differs() else "{0}"
        self._preset.set_full(changed.format(name))
