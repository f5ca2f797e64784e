"""Settings at random: valid values of every option of the tree, over speech, noise and silence of a second or two.

Whatever is drawn either runs, in the memory that is granted and with JSON that reads, or is refused in a sentence.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import soundfile

from pipelines import config as tree
from pipelines.config import presets
from tests.bench.campaign.attack import SPEECH, Attack

MEMORY_BYTES: Final = 4_000_000_000
PATIENCE: Final = 10.0
"""Times the usual limit: a graph of another vocabulary is compiled first."""
ENDLESS: Final = ("loop", "repeat_on_change")
SHARES: Final = (0.05, 0.15, 0.4, 1.0)
"""Of the options that are drawn; the others stay as the preset has them."""
SOUNDS: Final = ("speech", "noise", "silence", "click")
RATE: Final = 16_000


def attacks(random: random.Random, count: int) -> Iterator[Attack]:
    """One run of the smallest preset as it is, then `count` of settings at random."""
    yield _attack("as shipped", "gmm-quick", (), "speech", "run")
    names = sorted(presets.names())
    for number in range(count):
        preset, sound = random.choice(names), random.choice(SOUNDS)
        verb = random.choice(("run", "run", "run", "record", "audit"))
        yield _attack(f"settings {number}", preset, drawn(random, preset), sound, verb)


def drawn(random: random.Random, preset: str) -> tuple[str, ...]:
    """Assignments `key=value` of some options, each valid with those before it."""
    config, made = presets.load(preset).config, []
    share = random.choice(SHARES)
    for option in tree.options():
        if option.key in ENDLESS or random.random() > share:
            continue
        value = _value(random, option)
        if value is None:
            continue
        change = tree.replace(config, option.key, value)
        if tree.unavailable_reason(change, option.key):
            continue
        try:
            config = tree.check(change)
        except tree.ConfigError:
            continue
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        made.append(f"{option.key}={shown}")
    return tuple(made)


def _value(random: random.Random, option: tree.Option) -> tree.Value | None:
    """A value of the option: its ends as often as all between; None where a text names nothing that ships."""
    match option.type:
        case "bool":
            return random.random() < 0.5
        case "choice":
            return random.choice(option.choices)
        case "text":
            return random.choice(option.shipped()) if option.shipped() else None
    assert option.minimum is not None
    assert option.maximum is not None
    least, most = option.minimum, option.maximum
    if option.key == "pace":  # real time or faster
        least = 1.0
    at = random.choice((0.0, 1.0, random.random(), random.random() ** 4))
    value = least + at * (most - least)
    return round(value) if option.type == "int" else round(value, 4)


def _attack(name: str, preset: str, assignments: tuple[str, ...], sound: str, verb: str) -> Attack:
    words = tuple(word for text in assignments for word in ("--set", text))
    file = "a.flac"
    common = ("--preset", preset, *words, "--audio", file, "--json")
    commands: tuple[tuple[str, ...], ...] = (("run", "--no-profile", *common),)
    if verb == "record":
        commands = (("run", "--out", "s.asrs", *common), ("show", "s.asrs", "--json"))
    elif verb == "audit":
        commands = (("audit", *common),)
    return Attack(
        f"{name}: {preset}, {sound}, {verb}",
        functools.partial(_write, file, sound),
        commands,
        patience=PATIENCE,
        memory_bytes=MEMORY_BYTES,
    )


def _write(file: str, sound: str, folder: Path) -> None:
    rng = np.random.default_rng(5)
    samples = np.zeros(RATE * 2, np.float32)
    if sound == "speech":
        samples = soundfile.read(SPEECH, dtype="float32")[0][: 3 * RATE]
    elif sound == "noise":
        samples += 0.3 * rng.standard_normal(len(samples)).astype(np.float32)
    elif sound == "click":
        samples = samples[:200]
        samples[100] = 1.0
    soundfile.write(folder / file, np.clip(samples, -1.0, 1.0), RATE, "PCM_16")
