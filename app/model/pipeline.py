"""The settings a person edits: those of the next run, and those the running one has now.

A live setting changed during a run goes to the worker and is kept for the next run; any other is only kept (`waits`).
Settings of a recording are shown instead and cannot be changed. Nothing here knows which settings exist.
"""

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.model.toggles import Toggles
from pipelines import config as settings
from pipelines.config import Config, ConfigError, Option, Value, presets


def missing_file(config: Config, key: str | None = None) -> str | None:
    """Why `config` (or its setting `key` alone, idle or not) cannot run: it names no file that is there; or None."""
    for option in settings.options():
        if not option.names_in or key not in (None, option.key):
            continue
        value, names = str(settings.get(config, option.key)), option.shipped()
        exists = value.endswith(option.suffixes) and Path(value).expanduser().is_file()
        idle = key is None and settings.unavailable_reason(config, option.key) is not None
        if not (value in (*names, option.default) or exists or idle):
            shipped, ends = ", ".join(names) or "none", " or ".join(filter(None, option.suffixes))
            return (
                f"{option.key}: there is no file {value!r}; {shipped} came with the program, and any other is "
                f"the path of a {ends} file."
            )
    return None


class Pipeline(QObject):
    """Holds the configuration of the next run, the one in force during a run, and the one of a recording looked at."""

    changed = Signal(str, object)
    replaced = Signal()
    edited = Signal(str, object, object)  # A person changed a setting: its key, value before and value now
    live_change = Signal(str, object)
    refused = Signal(str, str)
    absent_changed = Signal()
    editing = Signal()  # The settings of a run are wanted, not those of the recording shown

    def __init__(self, preset: str = presets.DEFAULT, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.options: tuple[Option, ...] = tuple(settings.options())
        self.running: Config | None = None  # Configuration in force in the run under way
        self._before: dict[str, Value] = {}
        self._absent: Mapping[str, Mapping[str, str]] = {}
        self._adopted: Config | None = None
        self.recorded: Config | None = None  # Configuration of a recording that is shown in place of the next run's
        self._recorded_with = ""
        self._waiting: presets.Preset | None = None
        self.preset = presets.load(preset)
        self.next: Config = self.preset.config  # Configuration of the next run
        self.toggles = Toggles(self)
        self.toggles.note_used(self.next)

    @property
    def displayed(self) -> Config:
        return self.next if self.recorded is None else self.recorded

    @property
    def in_force(self) -> Config:
        return self.recorded or self.running or self.next

    @property
    def preset_shown(self) -> presets.Preset:
        """The preset of the settings shown: the recording's where this version has it, or the next run's."""
        if self.recorded is None or self._recorded_with not in presets.names():
            return self.preset
        return presets.load(self._recorded_with)

    @property
    def waiting(self) -> presets.Preset | None:
        """The preset of the next run, where it is not that of what is shown; or None."""
        return self._waiting or (None if self.preset_shown == self.preset else self.preset)

    def value(self, key: str) -> Value:
        return settings.get(self.displayed, key)

    def waits(self, key: str, value: Value | None = None) -> bool:
        """Tell whether a value (default: the next run's) is not the one in force in this run."""
        if self.running is None or self.recorded is not None:
            return False
        wanted = settings.get(self.next, key) if value is None else value
        return settings.get(self.running, key) != wanted

    def differs(self) -> bool:
        return modified(self.displayed, self.preset_shown.config)

    def unavailable_reason(self, key: str, choice: Value | None = None) -> str | None:
        """Why a setting (or one choice of it) cannot act here or with the others; None if it can."""
        if choice is not None and (reason := self._absent.get(key, {}).get(str(choice))):
            return self.tr("{0}: not on this machine ({1}).").format(choice, reason)
        config = self._effective_config(key)
        why = settings.unavailable_reason(config, key, choice)
        if why and config is self.running and not settings.unavailable_reason(self.next, key, choice):
            return self.tr("{0} The next run has that, the one under way has not.").format(why)
        if why or choice is None or choice == self.value(key):
            return why
        # What is chosen elsewhere may also stand in the way of this choice.
        try:
            settings.check(settings.replace(config, key, choice))
        except ConfigError as error:
            return str(error)
        return None

    def _effective_config(self, key: str) -> Config:
        if self.recorded is None and self.running is not None and settings.option(key).live:
            return self.running
        return self.displayed

    @property
    def locked(self) -> str | None:
        """Why nothing can be changed: a recording has had its settings. None if settings can be changed."""
        if self.recorded is None:
            return None
        return self.tr("Recorded: these were the settings at the cursor. For others, choose “Next run” in the form.")

    def condition(self, option: Option) -> str:
        """Say in a few words which other settings one waits for; empty if for none."""
        config = self._effective_config(option.key)
        for key in option.hangs_on:
            if settings.unavailable_reason(config, key):
                return self.condition(settings.option(key))
        parts = []
        for key, wanted in option.when.items():
            if settings.get(config, key) in wanted:
                continue
            names = [text or self.tr("not set") for text in settings.value_texts(wanted)]
            parts.append(f"{settings.option(key).title.lower()} {', '.join(names)}")
        return self.tr("with {0}").format("; ".join(parts)) if parts else self.tr("not with this model folder")

    def set_absent(self, absent: Mapping[str, Mapping[str, str]]) -> None:
        """Note which choices this machine lacks: setting → choice → reason."""
        self._absent = absent
        self.absent_changed.emit()

    def set(self, key: str, value: Value, by_hand: bool = True) -> bool:
        """Change a setting, `by_hand`: so that it can be undone; False and a sentence for what does not fit."""
        try:
            at_once = self.running is not None and settings.option(key).live
            if why := self.locked or (self.unavailable_reason(key) if at_once else None):
                raise ConfigError(why)
            changed = settings.replace(self.next, key, value)
            if key == settings.FOLDER:  # it brings what it recommends
                changed = settings.with_folder(self.next, str(settings.get(changed, key)), self.preset.config)
            changed = settings.check(changed)
            if why := missing_file(changed, key):
                raise ConfigError(why)
        except ConfigError as error:
            self.refused.emit(key, str(error))
            self.changed.emit(key, self.value(key))
            return False
        self._take(key, changed, by_hand)
        return True

    def _take(self, key: str, changed: Config, by_hand: bool) -> None:
        fitted = settings.get(changed, key)
        live = settings.option(key).live and self.waits(key, fitted)
        if changed == self.next and not live:
            return
        before = settings.get((live and self.running) or self.next, key)
        others = [o.key for o in self.options if settings.get(changed, o.key) != settings.get(self.next, o.key)]
        self.next = changed
        self.toggles.note_used(changed)
        if not settings.option(key).live:
            self._waiting = None  # what was chosen last counts
        if self.running is not None and live:
            self._before[key] = settings.get(self.running, key)
            self.running = settings.replace(self.running, key, fitted)
            self.live_change.emit(key, fitted)
        if by_hand:
            self.edited.emit(key, before, fitted)
        self.changed.emit(key, fitted)
        for other in others:
            if other != key:
                self.changed.emit(other, self.value(other))

    def choose(self, name: str) -> None:
        """Take the settings of a preset for the next run; the one under way keeps its own to its end."""
        preset = presets.load(name)
        if self.running is not None:
            self._waiting = None if preset == self.preset else preset
            self.replaced.emit()
            return
        self.recorded = None
        self._replace(preset, preset.config)
        self.editing.emit()

    def hear(self) -> None:
        """For a person's own speech, take the preset that hears it, unless somebody chose another or changed it."""
        usual = self.preset.name in (presets.DEFAULT, presets.DEMO)
        course = {key: settings.get(self.preset.config, key) for key in settings.COURSE}
        if usual and settings.assign(self.next, course) == self.preset.config:
            self.choose(presets.of_own_speech())

    def _replace(self, preset: presets.Preset, config: Config) -> None:
        self._waiting = None
        self.preset, self.next = preset, config
        self.toggles.note_used(config)
        self.replaced.emit()

    def edit(self) -> None:
        self.show_recorded(None)
        self.editing.emit()

    def show_recorded(self, config: Config | None, preset: str = "") -> None:
        """Show these settings, recorded with `preset`, which cannot be changed; None: again those of a run."""
        if config != self.recorded or preset != self._recorded_with:
            self.recorded, self._recorded_with = config, preset
            self.replaced.emit()

    def adopt(self, tree: Mapping[str, object], preset: str, session: Path | None = None) -> None:
        """Take the settings that `session` was recorded with: the form shows them, the next run repeats them."""
        if self.running is not None:
            return
        try:
            wanted = settings.from_dict(tree)
        except ConfigError:  # of another version
            return
        if session is not None:
            wanted = settings.found_again(wanted, session)
        self._adopted = wanted
        self._replace(presets.load(preset) if preset in presets.names() else self.preset, wanted)

    def chosen(self, key: str) -> bool:
        """Whether a person chose what a setting shown is, and not a session that was opened."""
        if self.value(key) in settings.option(key).shipped():
            return True
        session = self.recorded or self._adopted
        return session is None or settings.get(session, key) != self.value(key)

    def run_started(self, config: Config) -> None:
        self.running, self.recorded = config, None
        self.replaced.emit()

    def run_ended(self) -> None:
        if self.running is None:
            return
        self.running = None
        if self._waiting is not None:
            self._replace(self._waiting, self._waiting.config)
        else:
            self.replaced.emit()

    def not_taken(self, key: str) -> None:
        if self.running is not None and key in self._before:
            self.running = settings.replace(self.running, key, self._before.pop(key))
            self.changed.emit(key, self.value(key))


def remembered(preset: str, parent: QObject) -> Pipeline:
    """The pipeline of a preset, or of the usual one where there is none of that name."""
    try:
        return Pipeline(preset or presets.DEFAULT, parent=parent)
    except ConfigError:
        return Pipeline(parent=parent)


def modified(config: Config, preset: Config) -> bool:
    """Whether a configuration does other work than its preset: pace and loop only say when a run waits or ends."""
    return any(
        settings.get(config, option.key) != settings.get(preset, option.key)
        for option in settings.options()
        if option.key not in settings.COURSE
    )
