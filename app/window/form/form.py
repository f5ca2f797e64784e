"""The pipeline as a form, generated from the configuration tree in pipeline order; nothing here names a setting.

A dot marks what can change during a run; a change that waits for the next run says so. Each layer shows its main
settings; others, and those that cannot act, are folded away under its heading. Layers without any are behind one line
with a search, which finds every setting. For a recording the form shows its settings at the cursor, and none can be
changed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QEnterEvent
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QFrame, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.layout import REST, MadeOnUse, Scrolled, card_header, heading, lay_out, muted, named, styled
from app.model.audio_choice import AudioChoice
from app.model.pipeline import Pipeline
from app.style.plain_text import Button, Elided, Label, ToolButton, Wrapped, describe, set_tip
from app.style.stylesheet import restyle
from app.window.form.fields import FIELD_WIDTH, Dot, Field
from pipelines import config as settings
from pipelines.config import Option, Value
from profiler.plain import counted


def _more_button() -> ToolButton:
    button = named(styled(ToolButton(), 0.85), "form-more")
    button.setCheckable(True)
    return button


class Layer(QWidget):
    """A heading and its settings: the main ones that can act, and the rest behind a small button."""

    def __init__(self, name: str, fields: MadeOnUse[Field], waits: Callable[[str], bool]) -> None:
        super().__init__()
        self.options: dict[str, Option] = {}
        self.reasons: dict[str, str] = {}  # Why settings cannot act, by key
        self.query: tuple[str, ...] = ()  # Words that a setting must have to be shown; none: the usual ones
        self._fields, self._waits = fields, waits
        self.more = _more_button()
        self.more.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.more.toggled.connect(lambda _: self.fold())
        self.more.toggled.connect(lambda _: self.show())
        self.before: QWidget = self.more  # The widget before the first setting in the order of Tab
        first = lay_out(QHBoxLayout(), (heading(self.tr(name)), 1), self.more, spacing=0)
        self._rows = lay_out(QVBoxLayout(), spacing=2)
        self.column = lay_out(QVBoxLayout(self), first, self._rows, spacing=2, margins=(0, 6, 0, 0))

    def place(self, field: Field) -> None:
        """Put a new field where it belongs, for the eye and for Tab."""
        keys = list(self.options)
        earlier = [self._fields[key] for key in keys[: keys.index(field.option.key)] if key in self._fields]
        self._rows.insertWidget(len(earlier), field)
        self.setTabOrder(earlier[-1].editor if earlier else self.before, field.editor)
        field.setVisible(self.shows(field.option))

    @property
    def is_main(self) -> bool:
        return any(option.main and key not in self.reasons for key, option in self.options.items())

    def _is_folded(self, option: Option) -> bool:
        return not option.main or option.key in self.reasons

    def shows(self, option: Option) -> bool:
        if self.query:
            text = f"{self.tr(option.title)} {option.key} {option.help} {option.layer}".lower()
            return all(word in text for word in self.query)
        # What waits for the next run is not folded away: nobody would know of it.
        return self.more.isChecked() or not self._is_folded(option) or self._waits(option.key)

    def fold(self) -> None:
        for key, option in self.options.items():
            if (shown := self.shows(option)) or key in self._fields:
                self._fields[key].setVisible(shown)
        rest = [option for option in self.options.values() if self._is_folded(option)]
        self.more.setVisible(bool(rest) and not self.query)
        self.more.setText(self.tr("{0} more {1}").format(len(rest), "▴" if self.more.isChecked() else "▾"))
        lines = [", ".join(self.tr(o.title) for o in rest if o.key not in self.reasons)]
        if idle := ", ".join(self.tr(o.title) for o in rest if o.key in self.reasons):
            lines.append(self.tr("No effect with these settings: {0}").format(idle))
        tip = "\n".join(filter(None, lines))
        set_tip(self.more, tip)
        describe(self.more, tip)


class SettingsSource(QWidget):
    """Names the source of the settings shown; with a recording, a choice between its own and the next run's."""

    asked = Signal(bool)  # Whether the settings of the next run are wanted, or those at the cursor of the recording

    def __init__(self) -> None:
        super().__init__()
        self.said = styled(Elided(), muted=True)
        self.recorded = Button(self.tr("At the cursor"), partial(self.asked.emit, False))
        self.next = Button(self.tr("Next run"), partial(self.asked.emit, True))
        set_tip(self.recorded, self.tr("The settings in force at the cursor of the recording"))
        set_tip(self.next, self.tr("The settings of the next run, to be changed"))
        row = lay_out(QHBoxLayout(self), (self.said, 1), spacing=0, margins=(0, 0, 8, 0))
        for button in (self.recorded, self.next):
            styled(button, 0.92).setObjectName("segment")
            button.setCheckable(True)
            row.addWidget(button, 1)
        self.setFixedHeight(24)  # whether there is a choice or not: the settings below do not jump
        self.show_which(True, False, False)

    def show_which(self, editing: bool, offered: bool, running: bool) -> None:
        self.said.set_full(self.tr("settings of this run") if running else self.tr("settings of the next run"))
        self.said.setVisible(not offered)
        for button, chosen in ((self.recorded, not editing), (self.next, editing)):
            button.setVisible(offered)
            button.setChecked(chosen)


class PipelineForm(QFrame):
    """The card on the left: speech, then every setting by layer."""

    looked_at = Signal()

    def __init__(self, pipeline: Pipeline, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        named(self, "pipeline-form", card=True)
        self.setMinimumWidth(258)
        self.pipeline = pipeline
        self._arm: Mapping[str, Value] = {}
        self.fields = MadeOnUse(self._make)

        header, self._preset = card_header(self.tr("Pipeline"))
        header.setContentsMargins(0, 0, 8, 0)

        self.speech = Button(self.tr("choose…"))
        self.speech.setFixedWidth(FIELD_WIDTH)
        describe(self.speech, self.tr("Speech to decode"))

        self.which = SettingsSource()
        self.model = styled(Wrapped(""), muted=True)
        describe(self.model, self.tr("Model folder"))
        self.show_model("")
        rows = named(QWidget(), "scrolled")
        self._scroll = Scrolled(rows)
        legend = lay_out(QHBoxLayout(), Dot(True), (muted(self.tr("can change during a run")), 1), spacing=6)
        parts = (header, self.which, self.model, (self._scroll, 1), legend)
        lay_out(QVBoxLayout(self), *parts, spacing=6, margins=(14, 9, 6, 10))
        self._main, self._rest = (lay_out(QVBoxLayout(), spacing=4) for _ in range(2))
        self.search = QLineEdit(clearButtonEnabled=True)
        describe(self.search, self.tr("Search the settings"))
        self.search.textChanged.connect(lambda _: self._arrange())
        self.others = _more_button()
        self.others.toggled.connect(lambda _: self._arrange())
        more = lay_out(QHBoxLayout(), (self.search, 1), self.others, spacing=4, margins=(0, 8, 0, 0))
        self._column = lay_out(QVBoxLayout(rows), self._main, more, self._rest, REST, spacing=2, margins=(0, 0, 8, 0))
        self.layers: dict[str, Layer] = {}
        for option in pipeline.options:
            layer = self.layers.get(option.layer)
            if layer is None:
                layer = self.layers[option.layer] = Layer(option.layer, self.fields, pipeline.waits)
                if len(self.layers) == 1:
                    speech = lay_out(QHBoxLayout(), Dot(False), (Label(self.tr("Speech")), 1), self.speech, spacing=6)
                    layer.column.insertLayout(1, speech)
                    layer.before = self.speech
            layer.options[option.key] = option

        pipeline.changed.connect(self._one_changed)
        pipeline.replaced.connect(self.refresh)
        pipeline.absent_changed.connect(self._refresh_marks)
        self.refresh()

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.looked_at.emit()

    def show_speech(self, audio: AudioChoice | None, waits: bool = False, recorded: bool = False) -> None:
        """Show what the next run decodes (`waits`: the one under way does not), or what a recording has decoded."""
        if audio is None:
            text, tip = self.tr("choose…"), self.tr("No speech chosen yet")
            if recorded:
                text, tip = "–", self.tr("The session does not say which")
        elif audio.bundled:
            text = counted(audio.files, self.tr("voice"), self.tr("voices"))
            tip = self.tr("Bundled synthetic voices")
        else:
            one = audio.files == 1
            text = Path(audio.paths[0]).name if one else self.tr("{0} files").format(audio.files)
            tip = "\n".join(audio.paths)
        text, elide = self.tr("next: {0}").format(text) if waits else text, self.speech.fontMetrics().elidedText
        self.speech.setText(elide(text, Qt.TextElideMode.ElideMiddle, FIELD_WIDTH - 24))
        set_tip(self.speech, tip)
        self.speech.setEnabled(not recorded)

    def show_model(self, about: str) -> None:
        """Say which folder of a model is used, what stands in it and what it lacks; empty without one."""
        self.model.setText(about)
        self.model.setVisible(bool(about))

    def refresh(self) -> None:
        recorded = self.pipeline.recorded is not None
        if self.property("recorded") != recorded:
            self.setProperty("recorded", recorded)
            # Only their looks depend on it, and a style sheet takes its time for each widget.
            for kind in (QComboBox, QAbstractSpinBox, QLineEdit):
                for widget in self.findChildren(kind):
                    restyle(widget)
        for field in self.fields.values():
            self._show_value(field)
        self._refresh_marks()

    def _show_value(self, field: Field) -> None:
        field.show_locked(self.pipeline.recorded is not None)
        key = field.option.key
        field.show_value(self._arm.get(key, self.pipeline.value(key)))

    def show_arm(self, arm: Mapping[str, Value]) -> None:
        """Show the settings of the arm of an A/B that runs in place of those chosen; empty: no A/B runs."""
        if arm != self._arm:
            self._arm = arm
            for field in self.fields.values():
                self._show_value(field)

    def _make(self, key: str) -> Field:
        option = settings.option(key)
        layer = self.layers[option.layer]
        field = Field(option, layer)
        field.edited.connect(self.pipeline.set)
        field.refused.connect(self.pipeline.refused)
        self._show_value(field)
        self._mark(field)
        layer.place(field)
        return field

    def _one_changed(self, key: str, value: Value) -> None:
        if field := self.fields.get(key):
            self._show_value(field)
        self._refresh_marks()

    def _mark(self, field: Field) -> None:
        """Say what can act; a condition that settings of a layer wait for stands under the first of them alone."""
        pipeline, option = self.pipeline, field.option
        sentence = pipeline.unavailable_reason(option.key)
        choices = {c: why for c in option.choices if (why := pipeline.unavailable_reason(option.key, c))}
        chosen = choices.get(pipeline.value(option.key), "") if sentence is None else ""
        short = pipeline.condition(option) if sentence else chosen
        earlier = takewhile(lambda other: other is not option, self.layers[option.layer].options.values())
        above = next((o for o in reversed([*earlier]) if pipeline.unavailable_reason(o.key)), None)
        if sentence and above is not None and pipeline.condition(above) == short:
            short = ""
        field.show_unavailable_reason(sentence, short)
        field.show_choices(choices)
        field.show_waiting(pipeline.waits(option.key))
        field.show_acting(not option.switched_by or bool(pipeline.value(option.switched_by)))

    def _refresh_marks(self) -> None:
        pipeline = self.pipeline
        for field in self.fields.values():
            self._mark(field)
        for layer in self.layers.values():
            layer.reasons = {key: why for key in layer.options if (why := pipeline.unavailable_reason(key))}
        self._arrange()
        text = self.tr("{0} (modified)") if pipeline.differs() else "{0}"
        self._preset.set_full(text.format(pipeline.preset_shown.name))

    def _arrange(self) -> None:
        """Layers with main settings first, both parts in the order of the data; the others on request."""
        query = tuple(self.search.text().lower().split())
        for layer in self.layers.values():
            layer.query = query
            layer.fold()
        rest = [self.tr(name) for name, layer in self.layers.items() if not layer.is_main]
        self.search.setPlaceholderText(self.tr("search {0} settings").format(len(self.pipeline.options)))
        self.others.setText(self.tr("{0} more {1}").format(len(rest), "▴" if self.others.isChecked() else "▾"))
        self.others.setVisible(bool(rest) and not query)
        set_tip(self.others, ", ".join(rest))
        describe(self.others, self.tr("Show {0}").format(", ".join(rest)))
        for part, main in ((self._main, True), (self._rest, False)):
            layers = [layer for layer in self.layers.values() if layer.is_main is main]
            there = [item.widget() for i in range(part.count()) if (item := part.itemAt(i))]
            if there != layers:
                for layer in layers:
                    part.addWidget(layer)
        for layer in self.layers.values():  # not before it is in the form: it would be a window
            usual = layer.is_main or self.others.isChecked()
            layer.setVisible(any(map(layer.shows, layer.options.values())) or (usual and not query))

    def reveal(self, key: str) -> None:
        field = self.fields[key]
        self.search.clear()
        if field.isHidden():
            self.layers[field.option.layer].more.setChecked(True)
        self.show()
        self._column.activate()
        self._scroll.ensureWidgetVisible(field)
        field.editor.setFocus(Qt.FocusReason.ShortcutFocusReason)
