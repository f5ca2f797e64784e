"""Settings as `--set` takes them: all of a configuration, or what differs from its preset. No Qt."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pipelines import config as settings
from pipelines.config import Config, ConfigError, presets

if TYPE_CHECKING:
    from app.model.audio_choice import AudioChoice


def all_set(config: Config) -> list[str]:
    return [_assignment(config, option.key) for option in settings.options() if settings.get(config, option.key) != ""]


def differing(config: Config, preset: str) -> list[str] | None:
    """Return the active settings that differ from a preset, as key=value; None if there is no such preset."""
    if preset not in presets.names():
        return None
    bases = [presets.load(preset).config]
    with suppress(ConfigError):
        # What the model folder brings would replace what equals the preset.
        bases.append(settings.with_folder(bases[0], config.model_directory, bases[0]))
    return [
        _assignment(config, option.key)
        for option in settings.options()
        if any(settings.get(config, option.key) != settings.get(base, option.key) for base in bases)
        and settings.unavailable_reason(config, option.key) is None
    ]


def words_of_run(config: Config, preset: str, audio: AudioChoice | None) -> list[str]:
    """The arguments of the command line for a preset with these settings, but those of `COURSE`, and for its audio."""
    changed = differing(config, preset)
    texts = all_set(config) if changed is None else changed
    words = ["--preset", preset]
    for text in texts:
        if text.partition("=")[0] not in settings.COURSE:
            words += ["--set", text]
    if audio is not None and not audio.bundled:
        words += ["--audio", *audio.paths]
        words += [] if audio.transcripts is None else ["--transcripts", audio.transcripts]
    return words


def modified(config: Config, preset: Config) -> bool:
    """Whether a configuration does other work than its preset: pace and loop only say when a run waits or ends."""
    return any(
        settings.get(config, option.key) != settings.get(preset, option.key)
        for option in settings.options()
        if option.key not in settings.COURSE
    )


def _assignment(config: Config, key: str) -> str:
    return f"{key}={settings.value_text(settings.get(config, key))}"
