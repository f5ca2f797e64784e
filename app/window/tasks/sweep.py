"""Sweep: which settings are to vary, and for how many trials; `asrscope sweep` then tries them on the audio chosen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.layout import NONE, REST, lay_out
from app.model.provenance import words_of_run
from app.model.study import OBJECTIVES
from app.style.plain_text import Button, Label, Wrapped, describe, displayable, set_tip
from app.widgets import CheckBox, ChoiceBox, NumberBox
from app.window.tasks import study
from app.window.tasks.page import FormPage
from pipelines import config as settings
from pipelines.config import Option, Value, value_text
from pipelines.experiments.sweep import space
from profiler.errors import BadInput
from profiler.files.paths import new_session_path
from profiler.plain import counted

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "Sweep")

ROWS: Final = 3  # Settings that have a row at first
FIRST: Final = "search.beam"  # The setting of the first row: it trades time for word errors in every pipeline
TRIALS: Final = 24
MOST_TRIALS: Final = 10_000
ENDS: Final = ("pace=0", "loop=false")  # Runs that end, as fast as possible
NAMED: Final = ("rtf", "wer")  # The objectives at first


class VariedSetting:
    """A setting to vary, and its values."""

    def __init__(self, options: Sequence[Option], config: settings.Config) -> None:
        self._options, self._config = {option.key: option for option in options}, config
        self.key = ChoiceBox(tr("Setting"), [("–", ""), *((option.key, option.key) for option in options)])
        self.key.setMinimumContentsLength(22)
        self.values = QLineEdit()
        describe(self.values, tr("Values"))
        self.key.currentIndexChanged.connect(lambda _: self._offer())

    @property
    def text(self) -> str:
        """As `--over` takes it; empty without a setting or values."""
        key, values = str(self.key.currentData()), self.values.text().strip()
        return f"{key}={values}" if key and values else ""

    def choose(self, key: str) -> None:
        self.key.setCurrentIndex(max(self.key.findData(key), 0))

    def _offer(self) -> None:
        """Say what values there are; all of them are offered where they can be listed."""
        option = self._options.get(str(self.key.currentData()))
        if option is None:
            self.values.setPlaceholderText("")
            return
        acting = (v for v in option.choices if settings.unavailable_reason(self._config, option.key, v) is None)
        listed: list[Value] = [False, True] if option.type == "bool" else [*acting, *option.shipped()]
        self.values.setText(",".join(map(value_text, listed)))
        self.values.setPlaceholderText(displayable(_hint(option, settings.get(self._config, option.key))))
        set_tip(self.key, f"{option.title}. {option.help}")


def _hint(option: Option, now: Value) -> str:
    parts = [tr("now {0}").format(value_text(now))]
    if option.minimum is not None and option.maximum is not None:
        parts.append(tr("from {0:g} to {1:g}").format(option.minimum, option.maximum))
    if option.type in ("int", "float"):
        parts.append(tr("as 7,9,12 or 7..13"))
    return ", ".join(parts)


class SweepPage(FormPage):
    """Settings to vary with their values, number of trials, and objectives."""

    def __init__(self, w: MainWindow) -> None:
        super().__init__(tr("Sweep"), tr("Start"), w)
        self._w = w
        config = self._config = w.pipeline.next
        able = (o for o in settings.options() if o.key not in (*settings.COURSE, *settings.SOUND))
        self._options = [option for option in able if settings.unavailable_reason(config, option.key) is None]
        about = tr(
            "Tries settings on the audio of the next run, and finds those that no others beat. All else is as in the "
            "form (preset {0}); times are ratios to that."
        )
        self.remark = Wrapped("")
        self.rows: list[VariedSetting] = []
        self._settings = lay_out(QVBoxLayout(), margins=NONE)
        self.add = Button(tr("One more setting"), self.add_row)
        self.trials = NumberBox(whole=True)
        self.trials.setRange(1, MOST_TRIALS)
        self.trials.setValue(TRIALS)
        describe(self.trials, tr("Trials"))
        self.trials.valueChanged.connect(lambda _: self._check())
        self.objectives = {name: CheckBox(tr(about.title)) for name, about in OBJECTIVES.items()}
        audio = w.runs.next.audio
        self.objectives["wer"].setEnabled(audio is not None and audio.transcripts is not None)
        if not self.objectives["wer"].isEnabled():
            set_tip(self.objectives["wer"], tr("Without transcripts the word errors are not known."))
        for name, box in self.objectives.items():
            box.setChecked(name in NAMED and box.isEnabled())
            box.toggled.connect(lambda _: self._check())
        low = lay_out(QHBoxLayout(), Label(tr("Minimise:")), *self.objectives.values(), REST)
        number = lay_out(QHBoxLayout(), Label(tr("Trials:")), self.trials, REST, self.add)
        lead = Wrapped(about.format(w.pipeline.preset.name))
        lay_out(self.column, lead, self._settings, number, low, self.remark, self.buttons, REST, spacing=10)
        for _ in range(ROWS):
            self.add_row()
        self.rows[0].choose(FIRST)

    def add_row(self) -> None:
        row = VariedSetting(self._options, self._config)
        line = QWidget()
        lay_out(QHBoxLayout(line), row.key, (row.values, 1), margins=NONE)
        self._settings.addWidget(line)
        row.key.currentIndexChanged.connect(lambda _: self._check())
        row.values.textChanged.connect(lambda _: self._check())
        self.rows.append(row)
        self._check()

    def _check(self) -> None:
        texts = [row.text for row in self.rows if row.text]
        keys = {text.partition("=")[0] for text in texts}
        if len(keys) < len(texts):
            self._say(tr("A setting has two rows; enter all its values in one."), good=False)
            return
        try:
            axes = space.parse_axes(texts) if texts else ()
        except BadInput as problem:
            self._say(str(problem).removeprefix("--over "), good=False)
            return
        trials, size = int(self.trials.value()), space.size(axes)
        if not axes:
            self._say(tr("Enter values: 7,9,12 or, for a range of numbers, 7..13."), good=False)
        elif not any(box.isChecked() for box in self.objectives.values()):
            self._say(tr("Choose at least one objective."), good=False)
        elif size <= trials:
            said = counted(int(size), tr("combination"), tr("combinations"))
            self._say(tr("{0}; each is tried once.").format(said))
        else:
            said = counted(trials, tr("trial"), tr("trials"))
            self._say(tr("{0}, chosen by Optuna's sampler.").format(said))

    def _say(self, text: str, good: bool = True) -> None:
        self.remark.setText(text)
        self.take.setEnabled(good)

    def words(self) -> list[str]:
        """The arguments of `asrscope sweep`, without the folder."""
        w = self._w
        found = words_of_run(self._config, w.pipeline.preset.name, w.runs.next.audio)
        for text in ENDS:
            found += ["--set", text]
        for row in self.rows:
            found += ["--over", row.text] if row.text else []
        names = [name for name, box in self.objectives.items() if box.isChecked()]
        return [*found, "--objectives", ",".join(names), "--trials", str(int(self.trials.value()))]

    def accept(self) -> None:
        try:
            folder = new_session_path("sweep").with_suffix(".sweep")
        except OSError as error:
            self.remark.setText(str(error))
            return
        words = self.words()
        self.close()
        study.begin(self._w, folder, words)


def begin(w: MainWindow) -> None:
    w.bench.ask(SweepPage, lambda: SweepPage(w))
