"""Two configurations interleaved on the same audio in one session: the order of an honest A/B.

Both arms decode each utterance in direct succession; which one begins alternates (`interleave`), so that clock rate,
other programs and memory affect both alike. Arm A is configuration epoch 0, arm B epoch 1. The first passes warm caches
and branch predictors up; they are recorded but not counted (`measured_from` in the session's meta `ab`).

Also what recorded sessions ran, to run it again on this machine: settings of one or two arms, and what was decoded.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PureWindowsPath
from typing import Any, Final

from threadpoolctl import ThreadpoolController

import assets
from pipelines import config as settings
from pipelines.config import Config, Value
from pipelines.experiments import rerun
from pipelines.run.decode import Decoder
from pipelines.run.interleave import turns
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Progress, Recogniser
from pipelines.scoring import Prepared
from profiler.analysis.comparison.arms import arms_of
from profiler.errors import BadInput
from profiler.files import inputs, paths
from profiler.plain import one_line
from profiler.session.reader import Session
from profiler.session.writer import Journal

WARM_UP_PASSES = 1  # Passes that do not count
NAMES = ("A", "B")

STEP = "decoding both arms in turn"
MOST_AGAIN: Final = 3  # Of an item, one after the other: on a machine that often stands still an end must come


@dataclass(frozen=True)
class Arm:
    """One of the two configurations, and the settings that make it."""

    config: Config
    assignments: Mapping[str, Value]


class Interleaved:
    """The order of an A/B run (`pipelines.run.session_run.RunOrder`).

    Arms that differ in live settings alone share one recogniser, and with it the places of their data in memory.
    `recognisers`: that of A and that of B, once prepared. `most`: the repeats are doubled up to it until `decided`.
    """

    def __init__(
        self,
        a: Arm,
        b: Arm,
        repeat: int,
        warm_up: int = WARM_UP_PASSES,
        progress: Progress = lambda stage, fraction: None,
        cancelled: Callable[[], bool] = lambda: False,
        most: int = 0,
        decided: Callable[[], bool] = lambda: True,
    ) -> None:
        of_run = dict.fromkeys(settings.COURSE, "only says when a run waits or ends, or what comes next")
        of_run |= dict.fromkeys(settings.SOUND, "says what is decoded")
        for key in differences(a.config, b.config):
            if key in of_run:
                raise settings.ConfigError(f"{key} {of_run[key]}; both arms need the same.")
        self._arms = (a, b)
        self._repeat, self._warm_up = repeat, warm_up
        self._progress, self._cancelled = progress, cancelled
        self._most, self._decided = most, decided
        for arm in (a, b):
            settings.check(arm.config)
        self.recognisers: list[Recogniser] = []
        self._prepared: list[Prepared] = []
        self._measured_from: int | None = None
        self._again: list[int] = []
        self._step, self._begun = STEP, 0
        self.about: dict[str, Any] = {"ab": self._description()}

    def prepare(self, recogniser: Recogniser, build: Callable[[Config], Recogniser]) -> None:
        """Build the second recogniser where one cannot serve both arms."""
        a, b = self._arms
        shared = all(settings.option(key).live for key in differences(a.config, b.config))
        self.recognisers = [recogniser, recogniser if shared else build(b.config)]
        # A turn is no place to make shortlists in, nor to look for them on disk.
        self._prepared = [
            one.scorer.make_ready(arm.config, self._progress, self._cancelled)
            for one, arm in zip(self.recognisers, self._arms, strict=True)
        ]

    def run(self, decoder: Decoder, items: Sequence[Item], journal: Journal) -> None:
        decoder.run(self._turns(decoder, items, journal))

    def _turns(self, decoder: Decoder, items: Sequence[Item], journal: Journal) -> Iterator[Item]:
        threads = {arm.config.threads for arm in self._arms}
        pools = ThreadpoolController() if len(threads) > 1 else None
        order = turns(len(NAMES), len(items), self._passes(journal))
        for done, pair in enumerate(zip(order, order, strict=True)):  # both arms
            share = (done / len(items) - self._begun) / (self._warm_up + self._repeat - self._begun)
            self._progress(self._step, share)
            if pair[0].round >= self._warm_up and self._measured_from is None:
                self._measured_from = decoder.frame
                journal.marker("note", "Warm-up ends, measuring begins", decoder.frame)
                journal.meta("ab", self._description())
            for _ in range(MOST_AGAIN):
                stopped, firsts = decoder.result.stopped_ns, list[int]()
                for _, place, number in pair:
                    config, recogniser = self._arms[number].config, self.recognisers[number]
                    if recogniser.config != config:
                        recogniser.configure(config, self._prepared[number])
                    decoder.switch(recogniser, number)
                    if pools is not None:
                        pools.limit(limits=config.threads)
                    firsts.append(decoder.frame)
                    yield items[place]
                if decoder.result.stopped_ns == stopped or self._measured_from is None or self._cancelled():
                    break
                # The process stood still in one of them, and what its caches held is not as it was for the other.
                self._again += firsts
                journal.meta("ab", self._description())

    def _passes(self, journal: Journal) -> Iterator[int]:
        """Numbers of the passes, warm-up first; twice as many repeats each time that nothing is decided yet."""
        number = 0
        while number < self._warm_up + self._repeat:
            yield number
            number += 1
            last = number == self._warm_up + self._repeat
            if last and self._repeat < self._most and not self._cancelled() and not self._decided():
                self._begun, self._repeat = number, min(2 * self._repeat, self._most)
                self._step = f"{STEP}, not decided yet, up to {self._repeat} repeats"
                journal.meta("ab", self._description())

    def _description(self) -> dict[str, Any]:
        return {
            "arms": [
                {"name": name, "epoch": epoch, "set": dict(arm.assignments)}
                for epoch, (name, arm) in enumerate(zip(NAMES, self._arms, strict=True))
            ],
            "repeat": self._repeat,
            "warm_up": self._warm_up,
            "measured_from": self._measured_from,
            "again": list(self._again),
        }


def differences(a: Config, b: Config) -> list[str]:
    keys = [option.key for option in settings.options()]
    return [key for key in keys if settings.get(a, key) != settings.get(b, key)]


VOICES: Final = ("assets", "speech")  # The folders of the bundled voices, wherever the program lay that decoded them


@dataclass(frozen=True)
class Recorded:
    """Settings of arm A and arm B, without pace and loop; what was decoded, once each; and what to report."""

    configs: tuple[Config, Config]
    items: tuple[Item, ...]
    notes: tuple[str, ...]


def recorded(sessions: Sequence[Session], moved: Mapping[str, Value]) -> Recorded:
    """What one or two sessions ran.

    One session has the same settings in both arms; if it is an A/B session, those of its arms. `moved`: where files
    are now that the settings name. Raises BadInput (one sentence) where settings, audio or these files are missing.
    """
    made, notes = [], []
    for session in sessions:
        configs = _configs(session)
        if len(configs) > 1 and len(sessions) > 1:
            raise BadInput(f"{session.path} is an A/B session; its arms are compared with each other alone.")
        for config in configs:
            there, of_files = rerun.named_files(config, session.path, moved)
            made.append(settings.assign(there, rerun.AT_ONCE))
            notes += of_files
    return Recorded((made[0], made[-1]), _spoken(sessions), tuple(dict.fromkeys(notes)))


def _configs(session: Session) -> list[Config]:
    """The settings of a session: of its two arms, or those that ran longest."""
    if "ended" in session.meta.get("ab", {"ended": None}):  # an A/B within a run has an end, and the run around it
        frames = max((u.end_frame for u in session.utterances), default=0)
        return [rerun.settings_of(session.configs, frames)[0]]
    return [settings.from_dict(arm.config, "the session's configuration") for arm in arms_of(session)]


def _spoken(sessions: Sequence[Session]) -> tuple[Item, ...]:
    """What the first session decoded whose audio is all here, with the transcripts."""
    why = ""
    for session in sessions:
        done = [utterance for utterance in session.utterances if utterance.done]
        items = [_with_bundled(item) for item in rerun.items_of(done, session.path)]
        once = list({(item.path, item.part): item for item in items}.values())
        gone = [item for item in once if not (paths.of_this_machine(item.path) and inputs.regular(item.path))]
        if once and not gone:
            return tuple(once)
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            what = f"The audio of {session.path} is not here ({one_line(str(gone[0].path))}{more})"
        else:
            what = f"{session.path} holds no utterance that was decoded to its end"
        why = why or f"{what}, so it cannot be decoded again."
    raise BadInput(why)


def _with_bundled(item: Item) -> Item:
    """The item, with the bundled voice of that name in place of one of another copy of the program."""
    path = PureWindowsPath(item.path)  # takes both kinds of slashes
    here = assets.path("speech") / path.name
    if path.parts[-3:-1] == VOICES and not inputs.regular(item.path) and inputs.regular(here):
        return replace(item, path=here)
    return item
