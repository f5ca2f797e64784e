"""Texts of a picture: headline, caption, and the source of its numbers. No widgets.

Settings are those in force in the selection, or else at the cursor, with what changed within the stretch shown; never
those of the next run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import QCoreApplication, qVersion

from app.model import pipeline, provenance
from app.model.configurations import settings_before
from app.model.document import joined
from app.model.effects import Effect
from app.model.pipeline import Pipeline
from app.model.provenance import provenance_of
from app.style.theme import FONT_FAMILY
from pipelines import config as settings
from pipelines.config import Config, ConfigError, presets, value_text
from profiler.analysis.recorded import audio_seconds
from profiler.clock import FRAME_S
from profiler.machine.roofs.table import sound_drift
from profiler.plain import clock, counted, one_line, rtf_text

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from app.pictures.request import Extent
    from profiler.session.model import ConfigEpoch
    from profiler.session.reader import Session

MAX_CAPTION: Final = 420  # Characters of a line of the caption; the rest is in the file


def tr(text: str) -> str:
    return QCoreApplication.translate("pictures", text)


class ToggleState(NamedTuple):
    """A toggle: what it does at the cursor (`text`: and since when), whether it is on, and what flipping it did."""

    title: str
    does: str
    text: str
    on: bool
    effect: Effect | None


class Figure(NamedTuple):
    """A large figure, and what it is of."""

    name: str
    value: str
    scope: str


class Headline(NamedTuple):
    """What stands above the charts."""

    title: str
    subtitle: str
    toggles: tuple[ToggleState, ...]
    figures: tuple[Figure, ...]


class PictureTexts(NamedTuple):
    """Headline, lines of the caption, and the provenance that is embedded in the file."""

    headline: Headline
    caption: tuple[str, ...]
    origin: Mapping[str, str]


def picture_texts(snapshot: Snapshot, extent: Extent, command: str) -> PictureTexts:
    """Return the texts of a picture of `extent`; `snapshot` is at its cursor and has its selection."""
    session = snapshot.session
    preset = str(session.meta.get("preset") or "")
    first, end = extent.selected or (extent.first_frame, extent.cursor_frame)
    over = _in_force(session, first, min(end, extent.cursor_frame))
    shown, chosen = map(_read, (_in_force(session, extent.first_frame, extent.cursor_frame), over))
    toggles = _toggles(chosen, preset, snapshot.desk.pairs)
    changes = ", ".join(
        f"{key} {value_text(was)} → {value_text(now)} {tr('at')} {clock(frame * FRAME_S, 1)}"
        for frame, key, was, now in _changes(shown)
    )
    origin = {
        "range": f"{clock(extent.first_s, 2)} – {clock(extent.last_s, 2)}",
        "cursor": clock(extent.cursor_frame * FRAME_S, 2),
        "selection": extent.selection,
        "settings": " ".join(provenance.all_set(chosen[-1][1])) if chosen else "",
        "changes": changes,
        "effects": "; ".join(f"{t.title}: {t.effect.text}" for t in toggles if t.effect),
        **provenance_of(session, over[-1].tree if over else {}),
        "drift": _drift(session),
        "drawn with": f"Qt {qVersion()}, {FONT_FAMILY}",
        "drawn by": command,
    }
    origin = {key: value for key, value in origin.items() if value}
    headline = Headline(_title(session), _subtitle(snapshot, _extent_text(extent)), toggles, _figures(snapshot))
    lines = _settings_line(chosen, preset, changes, extent), source_line(origin), command
    return PictureTexts(headline, tuple(one_line(line, MAX_CAPTION) for line in lines), origin)


def _in_force(session: Session, first: int, end: int) -> list[ConfigEpoch]:
    """The settings in force in frames [first, end), in their order; the last are those at the cursor."""
    last = settings_before(session, end)
    begun = settings_before(session, first + 1)
    found = [c for c in session.configs if first < c.first_frame < end]
    if begun is not None and (not found or found[0].first_frame > begun.first_frame):
        found.insert(0, begun)
    return found or ([last] if last is not None else [])


Read = list[tuple[int, Config]]  # Settings with the frame from which on they were in force


def _read(over: Sequence[ConfigEpoch]) -> Read:
    try:
        return [(epoch.first_frame, settings.from_dict(epoch.tree)) for epoch in over]
    except ConfigError:  # of another version: nothing is said rather than something wrong
        return []


def _changes(read: Read) -> Iterator[tuple[int, str, settings.Value, settings.Value]]:
    """Frame, key, value before and after, of everything that changed."""
    for (_, before), (frame, after) in pairwise(read):
        for option in settings.options():
            was, now = (settings.get(c, option.key) for c in (before, after))
            if was != now:
                yield frame, option.key, was, now


def _toggles(read: Read, preset: str, pairs: Mapping[frozenset[str], Effect]) -> tuple[ToggleState, ...]:
    """The toggles that act with the other settings at the cursor."""
    if not read:
        return ()
    line = Pipeline()
    line.adopt(settings.to_dict(read[-1][1]), preset)
    flipped = {key: frame for frame, key, *_ in _changes(read)}
    found = []
    for toggle in (sharing[0] for sharing in line.toggles.places()):
        if toggle.idle is None:
            does = text = toggle.text()
            if (frame := flipped.get(toggle.key)) is not None:
                text = f"{text}, {tr('since {0}').format(clock(frame * FRAME_S, 1))}"
            effect = pairs.get(toggle.keys)
            found.append(ToggleState(tr(toggle.declared.title), does, text, toggle.on, effect))
    return tuple(found)


def _settings_line(read: Read, preset: str, changes: str, extent: Extent) -> str:
    """The line of the caption about settings: those of the selection or at the cursor, and what changed in view."""
    if not read:
        return tr("settings of another version")
    title = tr("settings at the cursor") if extent.selected is None else tr("settings selected")
    changed = provenance.differing(read[-1][1], preset)
    if changed is None:
        said = " ".join(provenance.all_set(read[-1][1]))
    else:
        said = ", ".join(filter(None, (tr("preset {0}").format(preset), " ".join(changed))))
    return joined(f"{title}: {said}", changes and tr("changed: {0}").format(changes))


def _title(session: Session) -> str:
    name = str(session.meta.get("preset") or "")
    if name not in presets.names():
        return one_line(name) or tr("session")
    preset = presets.load(name)
    try:
        changed = pipeline.modified(settings.from_dict(session.configs[-1].tree), preset.config)
    except (ConfigError, IndexError):  # of another version, or none
        changed = False
    return tr("{0} (modified)").format(preset.title) if changed else preset.title


def _extent_text(extent: Extent) -> str:
    """The stretch that is shown and where the cursor is, each unless it is all of the session."""
    parts = []
    if not extent.is_whole:
        parts.append(f"{clock(extent.first_s, 1)} – {clock(extent.last_s, 1)}")
    if extent.cursor_frame < extent.last_frame:
        parts.append(tr("cursor at {0}").format(clock(extent.cursor_frame * FRAME_S, 1)))
    return ", ".join(parts)


def _subtitle(snapshot: Snapshot, extent: str) -> str:
    session = snapshot.session
    audio_s = audio_seconds(session.utterances, 0, int(snapshot.track.n_frames))
    utterances = counted(len(session.utterances), tr("utterance"), tr("utterances"))
    parts = [Path(session.path).name, utterances, tr("{0} s of audio").format(f"{audio_s:.1f}"), extent]
    return " · ".join(one_line(part) for part in parts if part)


def _figures(snapshot: Snapshot) -> tuple[Figure, ...]:
    found = snapshot.desk
    rate, words = found.errors.rate, found.errors.words
    scope = counted(words, *found.errors.unit)
    if found.pair is not None and found.pair.words:
        scope = tr("{0}; {1}").format(scope, found.pair.words)
    of = found.transcribed
    if of.utterances < of.of:
        scope = tr("{0}; {1} of {2} utterances have a transcript").format(scope, *of)
    wer = ("–", "") if rate is None else (f"{100 * rate:.1f} %", scope)
    return Figure(tr("RTF"), rtf_text(found.rtf), found.scope.text), Figure(found.errors.name, *wer)


def _drift(session: Session) -> str:
    if not session.calibration:
        return tr("roofs not measured")
    moved = [abs(change) for change in sound_drift(session.meta.get("drift")).values()]
    if not moved:
        return tr("not measured")
    return tr("at most {0} %").format(f"{100 * max(moved):.1f}")


def source_line(origin: Mapping[str, str]) -> str:
    """The line of the caption about session, machine and versions."""
    titles = {"session": tr("session"), "file": "", "recorded": tr("recorded"), "config": tr("config"), "machine": ""}
    titles |= {"asrscope": "asrscope", "drift": tr("drift of the roofs")}
    known = {**origin, "session": origin.get("session", "")[:8]}
    return " · ".join(f"{title} {known[key]}".strip() for key, title in titles.items() if known.get(key))
