"""The order in which a run decodes its files: in sequence, again after a change of settings, and two settings in turns.

Only the same speech shows what a changed setting does: after a change the last utterances may be decoded again, and one
is decoded in turns with two settings on request (`Control.compare`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from pipelines import config as settings
from pipelines.config import Config
from pipelines.run import compiling, playlist
from pipelines.run.control import Control, setting_text
from pipelines.run.decode import Decoder
from pipelines.run.interleave import turns
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser
from profiler.errors import Cancelled
from profiler.session.writer import Journal

if TYPE_CHECKING:
    from pipelines.scoring.strategy import Progress

MOST_ROUNDS: Final = 40  # Of a comparison: what has not shown by then is too small to matter here
NAMES: Final = ("A", "B")
ENOUGH_S: Final = 4.0
"""Seconds of speech to decode again, at least, where there is as much: enough units (`same_speech.MIN_UNITS`) for a
confidence interval."""


@dataclass(frozen=True)
class Past:
    """An utterance that was decoded to its end: how long it is, and the settings that it met, in order."""

    item: Item
    seconds: float
    configs: tuple[Config, ...]


class PlaylistOrder:
    """Every file in order, `repeat` times over and then for as long as the setting `loop` is on."""

    about: Mapping[str, object] = {}

    def __init__(self, repeat: int, control: Control, progress: Progress) -> None:
        self._repeat, self._control, self._progress = repeat, control, progress
        self._past: list[Past] = []

    def prepare(self, recogniser: Recogniser, build: Callable[[Config], Recogniser]) -> None:
        """Make ready what a live change is going to need, where the settings say so."""
        now = recogniser.config
        if (changed := compiling.with_selection(now)) is None:
            return
        scorer, stopping = recogniser.scorer, lambda: self._control.stopping
        recogniser.configure(changed, scorer.make_ready(changed, self._progress, stopping))
        recogniser.configure(now)

    def run(self, decoder: Decoder, items: Sequence[Item], journal: Journal) -> None:
        decoder.run(self._order(decoder, items, journal))

    def _order(self, decoder: Decoder, items: Sequence[Item], journal: Journal) -> Iterator[Item]:
        again = lambda: decoder.recogniser.config.loop  # noqa: E731
        for item in playlist.passes(items, self._repeat, again, lambda: decoder.frame):
            coming = [item]
            while coming:
                following = coming.pop(0)
                before, done = decoder.recogniser.config, len(decoder.result.utterances)
                yield following
                if len(decoder.result.utterances) == done:
                    break  # it could not be read
                seconds = decoder.result.utterances[-1].audio_s
                self._past.append(Past(following, seconds, (before, *decoder.configs_met)))
                if self._control.other is None or decoder.changing:
                    # What a newer change wants comes instead.
                    coming = self._once_more(decoder.recogniser.config) or coming
                else:
                    yield from self._in_turn(decoder, following, journal)
                    coming = []

    def _once_more(self, now: Config) -> list[Item]:
        """What to decode again: after a change, the last utterances that met nothing but the settings before it.

        Only they tell what became of the words. Where they are short, the one within which the change came follows.
        """
        if not now.repeat_on_change:
            return []
        *earlier, last = self._past
        before = [c for c in last.configs if not alike(c, now)]
        if not before:
            return []
        again: dict[Item, float] = {}
        for past in (*reversed(earlier), last):
            if past is last or all(alike(config, before[-1]) for config in past.configs):
                again.setdefault(past.item, past.seconds)
            if sum(again.values()) >= ENOUGH_S:
                break
        return list(again)

    def _in_turn(self, decoder: Decoder, item: Item, journal: Journal) -> Iterator[Item]:
        """One utterance with the other settings (A) and the present ones (B) in turn, as fast as possible."""
        other, now, epoch = self._control.other, decoder.recogniser.config, decoder.epoch
        assert other is not None
        changed = now
        for key, value in other.items():
            changed = settings.replace(changed, key, value)
        arms = [msgspec.structs.replace(config, pace=0.0) for config in (changed, now)]
        scorer, stopping = decoder.recogniser.scorer, lambda: self._control.stopping
        try:
            ready = [scorer.make_ready(arm, self._progress, stopping) for arm in arms]
        except Cancelled:
            return
        epochs = decoder.new_epochs(len(arms))
        present = {key: settings.get(now, key) for key in other}
        named = zip(NAMES, epochs, (dict(other), present), strict=True)
        about: dict[str, object] = {
            "arms": [{"name": name, "epoch": number, "set": settings_of} for name, number, settings_of in named],
            "measured_from": decoder.frame,
            "ended": None,
        }
        journal.meta("ab", about)
        text = ", ".join(setting_text(key, value) for key, value in other.items())
        journal.marker("note", f"A/B begins, against {text}", decoder.frame)
        decoder.held = True
        for turn in turns(2, 1, range(MOST_ROUNDS)):
            if self._control.other is not other or self._control.changing or self._control.stopping:
                break
            decoder.recogniser.configure(arms[turn.arm], ready[turn.arm])
            decoder.switch(decoder.recogniser, epochs[turn.arm])
            yield item
        decoder.recogniser.configure(now, ready[1])
        decoder.switch(decoder.recogniser, epoch)
        decoder.held = False
        journal.meta("ab", about | {"ended": decoder.frame})
        journal.marker("note", "A/B ends", decoder.frame)
        if self._control.other is other:
            self._control.stop_comparing()


def alike(a: Config, b: Config) -> bool:
    """Whether two configurations do the same work: they differ at most in what comes when."""
    for key in settings.COURSE:
        value = settings.get(Config(), key)
        a, b = settings.replace(a, key, value), settings.replace(b, key, value)
    return a == b
