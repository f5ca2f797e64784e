"""Every kind of attack by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.bench.campaign import files, models, others, sessions, words
from tests.bench.campaign.attack import Kind

KINDS: Final[Mapping[str, Kind]] = {
    "audio": files.AUDIO,
    "caches": models.CACHES,
    "flags": Kind(words.flags),
    "graphs": models.GRAPHS,
    "kaldi": models.KALDI,
    "lengths": Kind(words.lengths),
    "mcp": others.ASSISTANTS,
    "models": models.MODELS,
    "nets": models.NETS,
    "outputs": Kind(words.outputs),
    "remembered": others.SETTINGS,
    "remote": others.MACHINES,
    "sessions": sessions.SESSIONS,
    "settings": Kind(words.settings),
    "studies": others.STUDIES,
    "texts": files.TEXT_FILES,
    "window": sessions.WINDOW,
}
