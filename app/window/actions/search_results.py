"""What the palette finds: actions by name and help, settings by name, key and help, presets by name and text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication

from app.model.pipeline import missing_file
from app.window.actions.actions import Registry, key_text
from pipelines.config import presets, value_text

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

BEGINS, NAMED, KEYED, HELPED = 0, 2, 6, 12  # Ranks by what of a setting or preset has the query
NOT_NOW: Final = 100  # Added to the rank of what cannot be used now


@dataclass(frozen=True)
class SearchResult:
    """A line of the palette; `usable`: it can be shown though idle; `rank`: least first, None: no match."""

    text: str
    group: str
    beside: str
    why: str | None
    do: Callable[[], object]
    rank: Callable[[str], int | None]
    usable: bool = True


def score(query: str, text: str) -> int | None:
    """Rank how well ``query`` matches ``text``: letters in order, starts of words first; None: no match."""
    query, text = query.lower().replace(" ", ""), text.lower()
    at, total = -1, 0
    for letter in query:
        found = text.find(letter, at + 1)
        while found != -1 and found != at + 1 and found > 0 and text[found - 1] != " ":
            later = text.find(letter, found + 1)
            if later == -1 or text[later - 1] != " ":
                break
            found = later
        if found == -1:
            return None
        begins = found == 0 or text[found - 1] == " "
        total += 0 if found == at + 1 else (1 if begins else 4)
        at = found
    return total


def _has(query: str, text: str) -> bool:
    text = text.lower()
    return all(word in text for word in query.lower().split())


def actions(registry: Registry) -> list[SearchResult]:
    def rank(text: str, group: str, help: str, query: str) -> int | None:
        ranks = [score(query, text), HELPED if query and help and _has(query, help) else None]
        if (beside := score(query, f"{group} {text}")) is not None:
            ranks.append(beside + 2)
        return min((rank for rank in ranks if rank is not None), default=None)

    return [
        SearchResult(
            text=action.text,
            group=action.group,
            beside="  ".join(key_text(key) for key in action.keys),
            why=(why := action.enabled.unavailable_reason()),
            usable=why is None,
            do=partial(registry.trigger, action.id),
            rank=partial(rank, action.text, action.group, action.help),
        )
        for action in registry
    ]


def _rank(title: str, key: str, help: str, query: str) -> int | None:
    """How well a query names something; nothing names none, so that only actions are listed at first."""
    if not query.strip():
        return None
    if title.lower().startswith(query.lower().strip()):
        return BEGINS
    places = ((title, NAMED), (key, KEYED), (f"{title} {key} {help}", HELPED))
    return next((rank for text, rank in places if _has(query, text)), None)


def presets_and_settings(window: MainWindow) -> list[SearchResult]:
    """Every preset, which is taken (during a run the window asks), and every setting, which the form shows."""
    tr, line = QCoreApplication.translate, window.pipeline
    every = {name: presets.load(name) for name in presets.names()}
    return [
        *(
            SearchResult(
                text=tr("PresetButton", preset.title),
                group=tr("PresetButton", "Preset"),
                beside=name,
                why=(why := missing_file(preset.config)),
                usable=why is None,
                do=partial(window.runs.choose_preset, name),
                rank=partial(_rank, preset.title, name, preset.description),
            )
            for name, preset in every.items()
        ),
        *(
            SearchResult(
                text=tr("Field", option.title),
                group=tr("Layer", option.layer),
                beside=f"{option.key}={value_text(line.value(option.key))}",
                why=line.unavailable_reason(option.key),
                do=partial(window.show_setting, option.key),
                rank=partial(_rank, option.title, option.key, option.help),
            )
            for option in line.options
        ),
    ]


def best(query: str, lines: Sequence[SearchResult]) -> list[SearchResult]:
    """Those that match, best first; what cannot be used now comes last."""
    ranks = ((line.rank(query), line) for line in lines)
    ranked = [(rank + (0 if line.usable else NOT_NOW), line) for rank, line in ranks if rank is not None]
    return [line for _, line in sorted(ranked, key=itemgetter(0))]
