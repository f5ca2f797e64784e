"""Texts of a picture: headline, caption, and the source of its numbers. No widgets.

Settings are those in force in the selection, or else at the cursor, with what changed within the stretch shown; never
those of the next run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication, qVersion

from app.model import pipeline, provenance
from app.model.configurations import settings_before
from app.model.effects import Effect
from app.model.pipeline import Pipeline
from app.model.provenance import provenance_of
from app.style.theme import FONT_FAMILY
from pipelines import config as settings
from pipelines.config import Config, ConfigError, presets, value_text
from profiler.analysis.recorded import audio_seconds
from profiler.clock import FRAME_S
from profiler.machine.roofs.table import sound_drift
from profiler.plain import clock, one_line, rtf_text

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from app.pictures.request import Extent
    from profiler.session.model import ConfigEpoch
    from profiler.session.reader import Session

MAX_CAPTION: Final = 420
"""Characters of a line of the caption; the rest is in the file."""


def tr(text: str) -> str:
    return QCoreApplication.translate("pictures", text)


@dataclass(frozen=True)
class ToggleState:
    """A toggle: its name, what it does at the cursor, whether it is on then, and what flipping it before did.

    `text`: what it does, and since when.
    """

    title: str
    does: str
    text: str
    on: bool
    effect: Effect | None


@dataclass(frozen=True)
class Figure:
    """A large figure: its name, its value, what it is of."""

    name: str
    value: str
    scope: str


@dataclass(frozen=True)
class Headline:
    """The line above the charts."""

    title: str
    subtitle: str
    toggles: tuple[ToggleState, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class PictureTexts:
    """Headline, lines of the caption, and the provenance that is embedded in the file."""

    headline: Headline
    caption: tuple[str, ...]
    origin: Mapping[str, str]


def picture_texts(snapshot: Snapshot, extent: Extent, command: str) -> PictureTexts:
    """Return the texts of a picture of `extent`; `snapshot` is at its cursor and has its selection."""
    session = snapshot.session
    shown = _Settings(session, _in_force(session, extent.first_frame, extent.cursor_frame))
    first, end = extent.selected or (extent.first_frame, extent.cursor_frame)
    over = _in_force(session, first, min(end, extent.cursor_frame))
    lines = _Settings(session, over)
    toggles = lines.toggles(snapshot.desk.pairs)
    origin = {
        "range": f"{clock(extent.first_s, 2)} – {clock(extent.last_s, 2)}",
        "cursor": clock(extent.cursor_frame * FRAME_S, 2),
        "selection": extent.selection,
        "settings": lines.all_text(),
        "changes": shown.changes_text(),
        "effects": "; ".join(f"{t.title}: {t.effect.text}" for t in toggles if t.effect),
        **provenance_of(session, over[-1].tree if over else {}),
        "drift": _drift(session),
        "drawn with": f"Qt {qVersion()}, {FONT_FAMILY}",
        "drawn by": command,
    }
    origin = {key: value for key, value in origin.items() if value}
    return PictureTexts(
        headline=Headline(
            _title(session),
            _subtitle(snapshot, _extent_text(extent)),
            toggles,
            _figures(snapshot, extent),
        ),
        caption=tuple(
            one_line(line, MAX_CAPTION)
            for line in (
                _settings_line(lines, shown, extent),
                source_line(origin),
                origin["drawn by"],
            )
        ),
        origin=origin,
    )


# -- settings --------------------------------------------------------------------------------


def _in_force(session: Session, first: int, end: int) -> list[ConfigEpoch]:
    """The settings in force in frames [first, end), in their order; the last are those at the cursor."""
    last = settings_before(session, end)
    begun = settings_before(session, first + 1)
    found = [c for c in session.configs if first < c.first_frame < end]
    if begun is not None and (not found or found[0].first_frame > begun.first_frame):
        found.insert(0, begun)
    return found or ([last] if last is not None else [])


class _Settings:
    """The settings over the stretch of time that is shown."""

    def __init__(self, session: Session, over: Sequence[ConfigEpoch]) -> None:
        self._preset = str(session.meta.get("preset") or "")
        self._read: list[tuple[int, Config]] = []
        for epoch in over:
            try:
                self._read.append((epoch.first_frame, settings.from_dict(epoch.tree)))
            except ConfigError:
                # Of another version: nothing is said rather than something wrong.
                self._read.clear()
                return

    @property
    def _now(self) -> Config | None:
        return self._read[-1][1] if self._read else None

    def _changes(self) -> Iterator[tuple[int, str, settings.Value, settings.Value]]:
        """Frame, key, value before and after, of everything that changed."""
        for (_, before), (frame, after) in zip(self._read, self._read[1:], strict=False):
            for option in settings.options():
                was, now = (settings.get(c, option.key) for c in (before, after))
                if was != now:
                    yield frame, option.key, was, now

    def toggles(self, pairs: Mapping[frozenset[str], Effect]) -> tuple[ToggleState, ...]:
        """Return the toggles that act with the other settings at the cursor."""
        if self._now is None:
            return ()
        line = Pipeline()
        line.adopt(settings.to_dict(self._now), self._preset)
        flips: dict[str, list[int]] = {}
        for frame, key, *_ in self._changes():
            flips.setdefault(key, []).append(frame)
        found = []
        for sharing in line.places():
            toggle = sharing[0]
            if toggle.idle is not None:
                continue
            does = text = toggle.text()
            if frames := flips.get(toggle.key):
                since = tr("since {0}").format(clock(frames[-1] * FRAME_S, 1))
                text = f"{text}, {since}"
            effect = pairs.get(toggle.keys)
            found.append(ToggleState(tr(toggle.declared.title), does, text, toggle.on, effect))
        return tuple(found)

    def differing(self) -> str:
        """The preset and what differs from it in the end; empty for settings of another version."""
        now = self._now
        if now is None:
            return ""
        found = provenance.differing(now, self._preset)
        if found is None:
            return self.all_text()
        text = tr("preset {0}").format(self._preset)
        return f"{text}, {' '.join(found)}" if found else text

    def changes_text(self) -> str:
        """Every change within the stretch shown, with its time."""
        return ", ".join(
            f"{key} {value_text(was)} → {value_text(now)} {tr('at')} {clock(frame * FRAME_S, 1)}"
            for frame, key, was, now in self._changes()
        )

    def all_text(self) -> str:
        """Every setting at the cursor, as `--set` takes them."""
        return "" if self._now is None else " ".join(provenance.all_set(self._now))


def _settings_line(lines: _Settings, shown: _Settings, extent: Extent) -> str:
    """The line of the caption about settings: those of the selection or at the cursor, and what changed in view."""
    differing, changes = lines.differing(), shown.changes_text()
    if not differing:
        return tr("settings of another version")
    title = tr("settings at the cursor") if extent.selected is None else tr("settings selected")
    parts = [f"{title}: {differing}"]
    if changes:
        parts.append(tr("changed: {0}").format(changes))
    return " · ".join(parts)


# -- headline --------------------------------------------------------------------------------


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
    whole = extent.first_s <= 0 and extent.last_s >= extent.end_s
    if whole and extent.cursor_frame * FRAME_S >= extent.end_s:
        return ""
    text = f"{clock(extent.first_s, 1)} – {clock(extent.last_s, 1)}"
    if extent.cursor_frame * FRAME_S < extent.last_s:
        cursor = tr("cursor at {0}").format(clock(extent.cursor_frame * FRAME_S, 1))
        return cursor if whole else f"{text}, {cursor}"
    return text


def _subtitle(snapshot: Snapshot, extent: str) -> str:
    session = snapshot.session
    audio_s = audio_seconds(session.utterances, 0, int(snapshot.track.n_frames))
    count = len(session.utterances)
    said = tr("1 utterance") if count == 1 else tr("{0} utterances").format(count)
    parts = [Path(session.path).name, said, tr("{0} s of audio").format(f"{audio_s:.1f}"), extent]
    return " · ".join(one_line(part) for part in parts if part)


def _figures(snapshot: Snapshot, extent: Extent) -> tuple[Figure, ...]:
    found = snapshot.desk
    rate, words = found.errors.rate, found.errors.words
    counted = f"{words} {found.errors.unit[words != 1]}"
    if found.pair is not None and found.pair.words:
        counted = tr("{0}; {1}").format(counted, found.pair.words)
    of = found.transcribed
    if of.utterances < of.of:
        counted = tr("{0}; {1} of {2} utterances have a transcript").format(counted, *of)
    return (
        Figure(tr("RTF"), rtf_text(found.rtf), found.scope.text),
        Figure(
            found.errors.name,
            "–" if rate is None else f"{100 * rate:.1f} %",
            "" if rate is None else counted,
        ),
    )


# -- caption ---------------------------------------------------------------------------------


def _drift(session: Session) -> str:
    if not session.calibration:
        return tr("roofs not measured")
    moved = [abs(change) for change in sound_drift(session.meta.get("drift")).values()]
    if not moved:
        return tr("not measured")
    return tr("at most {0} %").format(f"{100 * max(moved):.1f}")


def source_line(origin: Mapping[str, str]) -> str:
    """The line of the caption about session, machine and versions."""
    titled = {"recorded": tr("recorded"), "config": tr("config"), "asrscope": "asrscope"}
    titled |= {"drift": tr("drift of the roofs")}
    parts = [f"{tr('session')} {origin['session'][:8]}"] if "session" in origin else []
    for key in ("file", "recorded", "config", "machine", "asrscope", "drift"):
        if key in origin:
            parts.append(f"{titled[key]} {origin[key]}" if key in titled else origin[key])
    return " · ".join(parts)
