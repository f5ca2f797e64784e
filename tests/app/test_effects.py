"""What a change did, in the words of the top bar: against what, how far it is known, and the word errors."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from app.model.alignment import errors_in
from app.model.configurations import alike, arm_of, since, turns_of
from app.model.effects import Effect, arm_name, arm_names, effects_of
from app.views.stage_panel import before_text
from pipelines import config as settings
from pipelines.audio.word_errors import ErrorCount
from pipelines.config import Config, presets
from profiler.analysis.categories import CATEGORIES, OTHER_PROGRAMS
from profiler.analysis.comparison.arms import arms_of
from profiler.analysis.comparison.compare import compare_arms
from profiler.session.model import ConfigEpoch, LaneInfo, Marker, Utterance
from profiler.spans import SPAN, Stage
from tests.each import each

SECOND = 100
SELECTION, SKIP, BLOCK, PACE = "gmm.selection.enabled", "frames.skip", "block", "pace"
BASE = presets.load("demo").config


@dataclass(eq=False)
class Run:
    """A session decoded with settings that change between utterances, and its track."""

    configs: list[ConfigEpoch] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    utterances: list[Utterance] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    state: str = "recording"
    generation: int = 0
    path: str = "made up"
    wall: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)
    now: Config = BASE
    epoch: int = 0
    stages: ClassVar = {0: Stage(0, "decode.block", "decode", ())}
    lanes: ClassVar = {0: LaneInfo(0, "decode", "cpu", True, 0, 0)}

    def __post_init__(self) -> None:
        self._config()

    def _config(self) -> None:
        self.configs.append(ConfigEpoch(self.epoch, self.end, settings.to_dict(self.now), 0))

    def change(self, key: str, value: Any, requested_frame: int | None = None) -> None:
        self.now = settings.replace(self.now, key, value)
        self.epoch += 1
        asked = self.end if requested_frame is None else requested_frame
        self.markers.append(Marker(len(self.markers), "option", "text", 0, asked, self.end, self.epoch, key, value))
        self._config()

    def decode(self, name: str, cost: float, errors: int = 1, seconds: int = 5) -> None:
        first = self.end
        self.wall += [cost] * (seconds * SECOND)
        self.other += [0.0] * (seconds * SECOND)
        about = len(self.utterances), name, f"/{name}.wav", first, seconds * SECOND, float(seconds), "said", "heard"
        scored = (), 1, (self.epoch,), errors, 10, True, np.zeros((0, 2), np.int8)
        self.utterances.append(Utterance(*about, *scored))

    @property
    def spans(self) -> np.ndarray:
        """A tile per frame."""
        tiles = np.zeros(len(self.wall), SPAN)
        tiles["duration_ns"], tiles["frames"] = self.wall, 1
        tiles["first_frame"] = np.arange(len(tiles))
        tiles["start_ns"] = np.cumsum(tiles["duration_ns"]) - tiles["duration_ns"]
        return tiles

    @property
    def end(self) -> int:
        return len(self.wall)

    @property
    def track(self) -> Any:
        categories = np.zeros((self.end, len(CATEGORIES)))
        categories[:, CATEGORIES.index(OTHER_PROGRAMS)] = self.other
        categories[:, CATEGORIES.index("search")] = np.subtract(self.wall, self.other)
        return SimpleNamespace(
            total_ns=lambda first, last: categories[first:last].sum(axis=0),
            own_ns=lambda first, last: np.subtract(self.wall, self.other)[first:last],
            n_frames=self.end,
            generation=self.generation,
        )

    def effect(self, *keys: str, end: int | None = None) -> Effect | None:
        session, at = cast("Any", self), self.end if end is None else end
        return effects_of(session).last_change(session, self.track, at, frozenset(keys) or None)


@pytest.fixture
def flipped():
    """The same five seconds decoded with selection off, then on: 2.5 times faster, two errors more in ten words."""
    run = Run()
    run.decode("one", 5e6)
    run.change(SELECTION, True)
    run.decode("one", 2e6, errors=3)
    return run


def test_the_same_speech_decoded_both_ways_gives_ratio_and_words(flipped):
    effect = flipped.effect(SELECTION)
    assert effect.kind == "faster"
    assert effect.headline == "5.00 → 2.00 ms · 2.5× faster (2.5 to 2.5)"
    assert effect.before_ms / effect.after_ms == pytest.approx(effect.factor)
    assert sum(effect.before_parts.values()) == pytest.approx(effect.before_ms)
    assert sum(effect.after_parts.values()) == pytest.approx(effect.after_ms)
    assert effect.words == effect.remark == "1 → 3 errors of 10 (undecided)"
    assert "Over the same utterances: 1 → 3 errors of 10" in effect.details
    assert flipped.effect(SKIP) is None, "nothing was done there"
    flipped.wall[:500], flipped.other[:500] = [25e6] * 500, [20e6] * 500
    flipped.generation += 1
    assert flipped.effect(SELECTION).factor == pytest.approx(2.5), "time of other programs is no doing of the change"


def test_what_is_not_made_ready_for_is_not_being_prepared(flipped):
    """A pace that waits for its block, a change that was given up, and one that the end of the run came before."""

    def kind() -> str:
        flipped.generation += 1  # or else what was found before would do
        return flipped.effect(SELECTION).kind

    asked = flipped.end - 50
    flipped.markers.append(Marker(9, "option", "text", 0, asked, None, None, PACE, 4.0))
    assert flipped.effect().kind == "faster"
    flipped.markers[-1] = Marker(9, "option", "text", 0, asked, None, None, SELECTION, False)
    flipped.state = "closed"
    assert kind() == "faster"
    flipped.state = "recording"
    assert kind() == "preparing"
    flipped.markers.append(Marker(10, "error", "no net", 0, asked + 10, None, None, None, None))
    assert kind() == "faster"


def test_words_are_decided_by_an_interval_over_utterances():
    """One utterance decides nothing; six that all have two errors more do."""
    run = Run()
    for number in range(6):
        run.decode(f"u{number}", 5e6, errors=1)
    run.change(SELECTION, True)
    kinds = []
    for number in range(6):
        run.decode(f"u{number}", 2e6, errors=3)
        kinds.append(run.effect(SELECTION).words_kind)
    assert kinds == ["undecided"] * 3 + ["more"] * 3
    assert run.effect(SELECTION).words == "6 → 18 errors of 60"
    assert Effect("faster", 2.0, before=ErrorCount(1, 10)).words == ""


def test_no_factor_is_shown_without_its_interval():
    known = Effect("undecided", 2.5, before_ms=5.0, after_ms=2.0)
    assert known.headline == "5.00 → 2.00 ms · undecided"
    assert "2.5" not in known.text + known.details
    assert replace(known, kind="faster", low=2.2, high=2.9).brief == "2.5× faster (2.2–2.9)"


def test_a_change_of_something_else_is_no_effect_of_the_toggle(flipped):
    flipped.change(BLOCK, 16)
    flipped.decode("one", 1e6)
    assert flipped.effect(SELECTION) is None, "with this block it was never off"
    assert flipped.effect().headline == "2.00 → 1.00 ms · 2.0× faster (2.0 to 2.0)"


def test_the_pace_of_a_run_is_no_change(flipped):
    flipped.change(PACE, 4.0)
    assert flipped.effect(SELECTION).times == "2.5× faster (2.5 to 2.5)"
    assert since(cast("Any", flipped), flipped.end) == 500
    assert alike(cast("Any", flipped), flipped.end + 1) == {1, 2}
    assert alike(cast("Any", flipped), 0) == {0}, "those it began with, before any frame"


def test_at_the_cursor_nothing_is_known_of_what_comes(flipped):
    assert flipped.effect(SELECTION, end=400) is None
    later = flipped.effect(SELECTION, end=550)
    assert (later.kind, later.factor, later.headline, later.words) == ("other speech", None, "no comparison yet", "")
    few = flipped.effect(SELECTION, end=750)
    assert (few.kind, few.headline, few.words) == ("undecided", "5.00 → 2.00 ms · undecided", "")


def test_what_is_waited_for_is_said():
    """The demo decodes again what it decoded last; word errors need an utterance that was whole before the change."""
    run = Run()
    assert run.now.repeat_on_change
    run.decode("one", 5e6)
    run.decode("two", 5e6, seconds=2)
    run.change(SELECTION, True)
    run.decode("two", 2e6, seconds=3)  # goes on
    said = run.effect(SELECTION)
    assert (said.headline, said.remark) == ("no comparison yet", "same speech comes next")
    run.decode("one", 2e6)
    almost = run.effect(SELECTION, end=run.end - 100)
    assert (almost.times, almost.remark) == ("2.5× faster (2.5 to 2.5)", "words follow")
    assert "words count at its end" in almost.details
    assert run.effect(SELECTION).remark == "1 → 1 errors of 10 (the same)"
    run.state = "closed"
    assert run.effect(SELECTION, end=run.end - 99).remark == "", "nothing follows in a recording"


def test_words_that_only_an_ab_brings_are_said_to():
    """The change came within the first utterance: none was decoded to its end before it."""
    run = Run()
    run.decode("one", 5e6)
    run.utterances[0] = replace(run.utterances[0], epochs=(0, 1))
    run.change(SELECTION, True, requested_frame=400)
    run.configs[-1] = replace(run.configs[-1], first_frame=400)
    run.decode("one", 2e6)
    effect = run.effect(SELECTION)
    assert (effect.times, effect.remark) == ("2.5× faster (2.5 to 2.5)", "words: by A/B")
    assert "an A/B decodes one both ways" in effect.details


def ab(run: Run, pairs: int) -> None:
    """Selection off (A) and on (B) in turn over one utterance."""
    arms = [settings.replace(run.now, SELECTION, False), settings.replace(run.now, SELECTION, True)]
    epochs = (run.epoch + 1, run.epoch + 2)
    run.meta["ab"] = {
        "arms": [{"name": n, "epoch": e} for n, e in zip("AB", epochs, strict=True)],
        "measured_from": run.end,
        "ended": None,
    }
    for number in range(pairs):
        for arm in (0, 1) if number % 2 == 0 else (1, 0):
            run.now, run.epoch = arms[arm], epochs[arm]
            run._config()
            run.decode("one", (8e6, 2e6)[arm], errors=(1, 3)[arm])


def test_an_arm_is_named_as_the_form_shows_its_value():
    a = dict(settings.flatten(settings.to_dict(BASE)))
    named = {SELECTION: (True, "on"), SKIP: (2, "every 2nd"), BLOCK: (16, "16"), "search.beam": (9.5, "9.5")}
    for key, (value, name) in named.items():
        assert arm_name(a, {**a, key: value}) == name
    assert arm_name(a, {**a, SKIP: 2, BLOCK: 16}) == "B"


def test_an_ab_holds_its_arms_against_each_other_whichever_has_its_turn(flipped):
    ab(flipped, 3)
    for end in range(flipped.end - 1200, flipped.end + 1, 100):
        assert flipped.effect(SELECTION, end=end).factor > 1, f"at frame {end}"
    effect = flipped.effect(SELECTION)
    assert (effect.kind, effect.turns) == ("faster", 3)
    assert effect.headline == "8.00 → 2.00 ms · 4.0× faster (4.0 to 4.0)"
    compared = compare_arms(*arms_of(cast("Any", flipped)))
    assert effect.factor == pytest.approx(1 / compared.overall.ratio.ratio, rel=1e-12)
    assert (effect.low, effect.high) == pytest.approx(tuple(1 / end for end in reversed(compared.overall.ratio.ci95)))
    assert effect.words == "1 → 3 errors of 10 (undecided)"


def test_the_turns_of_an_ab_are_named_by_what_their_arm_has(flipped):
    begin, session = flipped.end, cast("Any", flipped)
    assert turns_of(session, begin, ("", "")) == []
    ab(flipped, 2)
    names = arm_names(session, flipped.end)
    assert names == ("off", "on")
    turns = turns_of(session, flipped.end - 100, names)
    assert [turn.text for turn in turns] == ["A off", "B on", "B on · 2", "A off · 2"]
    assert [turn[:2] for turn in turns][::3] == [(begin, begin + 500), (begin + 1500, begin + 1900)]
    assert (arm_of(session, begin + 1), arm_of(session, begin + 501), arm_of(session, begin)) == ("A", "B", "")


def test_an_ab_that_decides_nothing_yet_says_how_far_it_is(flipped):
    ab(flipped, 2)
    effect = flipped.effect(SELECTION)
    # A turn is 5 s at 8 ms a frame and 5 s at 2 ms.
    assert (effect.kind, effect.missing) == ("undecided", (1, pytest.approx(5.0)))
    assert (effect.headline, effect.remark) == ("8.00 → 2.00 ms · undecided", "about 1 turn more, 5 s")
    flipped.state = "closed"
    flipped.generation += 1
    assert flipped.effect(SELECTION).needs == "", "nothing follows in a recording"


@each(
    "factor, kind, text",
    [
        (2.71, "faster", "2.7× faster (2.7 to 2.7)"),
        (1.0 / 1.52, "slower", "1.5× slower (1.5 to 1.5)"),
        (1.04, "faster", "1.04× faster (1.04 to 1.04)"),
        (12.4, "faster", "12× faster (12 to 12)"),
        (1.001, "no difference", "no difference (1.00 to 1.00)"),
        (None, "undecided", "undecided"),
    ],
)
def test_the_factor_in_words(factor, kind, text):
    assert Effect(kind, factor, factor, factor).times == text


def test_the_line_next_to_the_bars_has_both_times_their_ratio_and_what_is_missing():
    """The times are of the same speech, and their ratio is the factor: 73.4 against 12.2 was said to be 2.8."""
    effect = Effect("faster", 3.4, 2.9, 3.9, before_ms=41.5, after_ms=12.2, seconds=13.2)
    undecided = replace(effect, kind="undecided", low=None, high=None, seconds=5.0, turns=2, missing=(1, 40.0))
    for pair, text in (
        (effect, "same 13 s of speech: 41.5 → 12.2 ms · 3.4× faster (2.9 to 3.9)"),
        (undecided, "same 5 s of speech: 41.5 → 12.2 ms · undecided · about 1 turn more, 40 s"),
    ):
        assert before_text(cast("Any", SimpleNamespace(pair=pair, baseline=None))) == text


def errors_since(run: Run, first: int) -> ErrorCount:
    return errors_in(cast("Any", run), first, run.end, run.end)[0]


def test_what_is_decoded_again_counts_once_for_the_word_error_rate_and_turns_of_an_ab_do_not_count():
    run = Run()
    run.change(SELECTION, True)
    run.decode("clear", 5e6, errors=1)
    for errors in (9, 9, 2):
        run.decode("noisy", 5e6, errors=errors)
    start = run.end
    ab(run, 2)
    run.meta["ab"]["ended"] = run.end
    assert errors_since(run, 0) == ErrorCount(3, 20)
    assert errors_since(run, start) == ErrorCount(4, 20), "of the A/B itself: one utterance, with either setting"
