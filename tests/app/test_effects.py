"""What a change did, in the words of the top bar: against what, how far it is known, and the word errors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from frame_rows import rows_of

from app.model.configurations import Configurations
from app.model.effects import Effect, arm_name, effects_of
from app.model.figures import figures
from app.model.time_axis import TimeAxis
from app.views.stage_texts import before_text
from pipelines import config as settings
from pipelines.audio.word_errors import ErrorCount
from pipelines.config import Config, presets
from profiler.analysis.categories import CATEGORIES, OTHER_PROGRAMS
from profiler.session.model import ConfigEpoch, Marker, Utterance

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

    def __post_init__(self) -> None:
        self._config()

    def _config(self) -> None:
        tree = settings.to_dict(self.now)
        self.configs.append(ConfigEpoch(self.epoch, self.end, tree, 0))

    def change(self, key: str, value: Any, requested_frame: int | None = None) -> None:
        self.now = settings.replace(self.now, key, value)
        self.epoch += 1
        requested_frame = self.end if requested_frame is None else requested_frame
        number = len(self.markers)
        self.markers.append(Marker(number, "option", "text", 0, requested_frame, self.end, self.epoch, key, value))
        self._config()

    def decode(self, name: str, cost: float, errors: int = 1, seconds: int = 5) -> None:
        first = self.end
        self.wall += [cost] * (seconds * SECOND)
        self.other += [0.0] * (seconds * SECOND)
        number = len(self.utterances)
        self.utterances.append(
            Utterance(
                number, name, f"/{name}.wav", first, seconds * SECOND, float(seconds), "said",
                "heard", (), 1, (self.epoch,), errors, 10, True, np.zeros((0, 2), np.int8),
            )
        )  # fmt: skip

    @property
    def end(self) -> int:
        return len(self.wall)

    @property
    def track(self) -> Any:
        categories = np.zeros((self.end, len(CATEGORIES)))
        categories[:, CATEGORIES.index(OTHER_PROGRAMS)] = self.other
        wall = np.array(self.wall)
        return SimpleNamespace(
            wall_ns=wall,
            wall_row=rows_of(wall)[0],
            categories_ns=categories,
            n_frames=self.end,
            generation=self.generation,
        )

    def effect(self, *keys: str, end: int | None = None) -> Effect | None:
        at = self.end if end is None else end
        found = effects_of(cast("Any", self))
        return found.last_change(cast("Any", self), self.track, at, frozenset(keys) if keys else None)


@pytest.fixture
def flipped() -> Run:
    """The same five seconds decoded with selection off, then on: 2.5 times faster, two errors more in ten words."""
    run = Run()
    run.decode("one", 5e6)
    run.change(SELECTION, True)
    run.decode("one", 2e6, errors=3)
    return run


def test_the_same_speech_decoded_both_ways_gives_ratio_and_words(flipped: Run) -> None:
    effect = flipped.effect(SELECTION)
    assert effect.kind == "faster"
    assert effect.headline == "2.5× faster"
    assert effect.words == effect.remark == "+20.0 points (n = 10 words)"
    assert "1 before, 3 after, of 10 words" in effect.details
    assert flipped.effect(SKIP) is None, "nothing was done there"


def test_other_speech_is_named_and_has_no_ratio() -> None:
    run = Run()
    run.decode("one", 5e6)
    run.change(SELECTION, True)
    run.decode("two", 1e6)
    effect = run.effect(SELECTION)
    assert (effect.kind, effect.factor, effect.headline) == ("other speech", None, "no comparison yet")
    assert effect.words == ""


def test_what_is_not_made_ready_for_is_not_being_prepared(flipped: Run) -> None:
    """A pace that waits for its block, a change that was given up, and one that the end of the run came before."""

    def kind() -> str:
        flipped.generation += 1  # or else what was found before would do
        effect = flipped.effect(SELECTION)
        return effect.kind

    asked = flipped.end - 50
    flipped.markers.append(Marker(9, "option", "text", 0, asked, None, None, PACE, 4.0))
    everything = flipped.effect()
    assert everything.kind == "faster"
    flipped.markers[-1] = Marker(9, "option", "text", 0, asked, None, None, SELECTION, False)
    flipped.state = "closed"
    assert kind() == "faster"
    flipped.state = "recording"
    assert kind() == "preparing"
    flipped.markers.append(Marker(10, "error", "no net", 0, asked + 10, None, None, None, None))
    assert kind() == "faster"


def test_a_change_that_has_come_to_act_is_seen_at_once(flipped: Run) -> None:
    asked = flipped.end - 50
    marker = Marker(9, "option", "text", 0, asked, None, None, SELECTION, False)
    flipped.markers.append(marker)
    waiting = flipped.effect(SELECTION)
    assert waiting.kind == "preparing"
    assert flipped.effect(SKIP) is None
    flipped.markers[-1] = replace(marker, applied_frame=flipped.end - 1)
    acts = flipped.effect(SELECTION)
    assert acts.kind == "faster"


def test_the_interval_lies_around_the_factor(flipped: Run) -> None:
    flipped.wall[500:1000] = np.linspace(1.5e6, 2.5e6, 500).tolist()
    effect = flipped.effect(SELECTION)
    assert effect.low is not None
    assert effect.factor is not None
    assert effect.high is not None
    assert effect.low < effect.factor < effect.high


def test_word_errors_need_both_sides_and_follow_the_verdict_of_an_ab() -> None:
    scored = ErrorCount(1, 10)
    assert Effect("faster", 2.0, before=scored).points is None
    assert Effect("faster", 2.0, before=scored).words == ""
    decided = Effect("faster", 2.0, before=scored, after=scored, turns=3)
    assert decided.remark == decided.words == "±0.0 points (n = 10 words)"


def test_time_that_other_programs_took_is_no_doing_of_the_change(flipped: Run) -> None:
    flipped.wall[:500] = [25e6] * 500
    flipped.other[:500] = [20e6] * 500
    effect = flipped.effect(SELECTION)
    assert effect.factor == pytest.approx(2.5)


def test_a_change_of_something_else_is_no_effect_of_the_toggle(flipped: Run) -> None:
    flipped.change(BLOCK, 16)
    flipped.decode("one", 1e6)
    assert flipped.effect(SELECTION) is None, "with this block it was never off"
    newest = flipped.effect()
    assert newest.headline == "2.0× faster"


def test_the_pace_of_a_run_is_no_change(flipped: Run) -> None:
    flipped.change(PACE, 4.0)
    effect = flipped.effect(SELECTION)
    assert effect.headline == "2.5× faster"
    known = Configurations()
    assert known.since(cast("Any", flipped), flipped.end) == 500
    assert known.alike(cast("Any", flipped), flipped.end + 1) == {1, 2}
    assert known.alike(cast("Any", flipped), 0) == {0}, "those it began with, before any frame"


def test_at_the_cursor_nothing_is_known_of_what_comes(flipped: Run) -> None:
    assert flipped.effect(SELECTION, end=400) is None
    later = flipped.effect(SELECTION, end=550)
    assert later.kind == "other speech"
    few = flipped.effect(SELECTION, end=750)
    assert (few.kind, few.headline, few.words) == ("undecided", "2.5× faster", "")


def test_what_is_waited_for_is_said() -> None:
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
    assert (almost.headline, almost.remark) == ("2.5× faster", "words follow")
    assert "words count at its end" in almost.details
    whole = run.effect(SELECTION)
    assert whole.remark == "±0.0 points (n = 10 words)"
    run.state = "closed"
    later = run.effect(SELECTION, end=run.end - 99)
    assert later.remark == "", "nothing follows in a recording"


def test_words_that_only_an_ab_brings_are_said_to() -> None:
    """The change came within the first utterance: none was decoded to its end before it."""
    run = Run()
    run.decode("one", 5e6)
    run.utterances[0] = replace(run.utterances[0], epochs=(0, 1))
    run.change(SELECTION, True, requested_frame=400)
    run.configs[-1] = replace(run.configs[-1], first_frame=400)
    run.decode("one", 2e6)
    effect = run.effect(SELECTION)
    assert (effect.headline, effect.remark) == ("2.5× faster", "words: by A/B")
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


def test_an_arm_is_named_as_the_form_shows_its_value() -> None:
    a = dict(settings.flatten(settings.to_dict(BASE)))
    named = {SELECTION: (True, "on"), SKIP: (2, "every 2nd"), BLOCK: (16, "16"), "search.beam": (9.5, "9.5")}
    for key, (value, name) in named.items():
        assert arm_name(a, {**a, key: value}) == name
    assert arm_name(a, {**a, SKIP: 2, BLOCK: 16}) == "B"


def test_a_turn_of_the_settings_before_shows_no_effect_of_those_after(flipped: Run) -> None:
    """The breakdown once said "3.06 ms, baseline 2.98 ms, 3.9× faster": of A, what B did."""
    ab(flipped, 3)
    turns = [(flipped.end - 500 * back, back in (0, 3, 4)) for back in range(6)]
    for end, is_b in turns:
        reported = effects_of(cast("Any", flipped)).in_force(cast("Any", flipped), flipped.track, end)
        assert (reported is not None) == is_b, f"the turn that ends at frame {end}"
        assert flipped.effect(SELECTION, end=end) is not None, "the toggle tells it at any time"


def test_an_ab_holds_its_arms_against_each_other_whichever_has_its_turn(flipped: Run) -> None:
    ab(flipped, 3)
    for end in range(flipped.end - 1200, flipped.end + 1, 100):
        effect = flipped.effect(SELECTION, end=end)
        assert effect.factor is not None
        assert effect.factor > 1, f"at frame {end}"
    effect = flipped.effect(SELECTION)
    assert (effect.kind, effect.turns, effect.arm) == ("faster", 3, "on")
    assert effect.headline == f"on is 4.00× faster ({effect.low:.2f}–{effect.high:.2f})"
    assert effect.brief == "on: 4.0× faster"
    assert effect.words == "+20.0 points (n = 10 words)"


def test_an_ab_that_decides_nothing_yet_says_how_far_it_is(flipped: Run) -> None:
    ab(flipped, 2)
    effect = flipped.effect(SELECTION)
    assert (effect.kind, effect.remark) == ("undecided", "A/B: 2 turns each")


@pytest.mark.parametrize(
    ("factor", "kind", "text"),
    [
        (2.71, "faster", "2.7× faster"),
        (1.0 / 1.52, "slower", "1.5× slower"),
        (1.04, "faster", "1.04× faster"),
        (12.4, "faster", "12× faster"),
        (1.001, "no difference", "no difference"),
        (None, "other speech", "no comparison yet"),
    ],
)
def test_the_headline(factor: float | None, kind: Any, text: str) -> None:
    assert Effect(kind, factor).headline == text


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (10, 11, "+1.0 point (n = 100 words)"),
        (10, 12, "+2.0 points (n = 100 words)"),
        (12, 10, "\N{MINUS SIGN}2.0 points (n = 100 words)"),
        (10, 10, "±0.0 points (n = 100 words)"),
    ],
)
def test_the_words(before: int, after: int, text: str) -> None:
    effect = Effect("faster", 2.0, before=ErrorCount(before, 100), after=ErrorCount(after, 100))
    assert effect.words == text
    assert effect.shorter == (text.replace(" words)", ")"), text.partition(" (")[0], "")


def test_one_word_and_one_turn_are_singular() -> None:
    effect = Effect("faster", 2.0, before=ErrorCount(0, 1), after=ErrorCount(1, 1), turns=1)
    assert effect.words == "+100.0 points (n = 1 word)"
    assert "A/B: 1 turn each" in effect.details
    assert effect.details.endswith("0 before, 1 after, of 1 word")


def test_the_baseline_says_which_speech_its_factor_is_of() -> None:
    """The bars next to it include other speech: 6.98 ms over theirs is another factor."""
    effect = Effect("faster", 4.5, seconds=8.2)
    model = cast("Any", SimpleNamespace(effect=effect, before_wall_ms=6.98, pinned=None))
    assert before_text(model) == "pale bars: before, 6.98 ms · 4.5× faster on the same 8 s of speech"


def test_the_wer_of_the_top_bar_is_that_of_the_settings_in_force(flipped: Run) -> None:
    def errors(end: int) -> ErrorCount:
        shown = SimpleNamespace(session=flipped, track=flipped.track, cursor_frame=end, live=True, axis=TimeAxis())
        return figures(cast("Any", shown)).errors

    assert errors(500) == ErrorCount(1, 10)
    assert errors(700) == ErrorCount(0, 0), "none is finished under the new settings"
    assert errors(1000) == ErrorCount(3, 10)
    flipped.change(SELECTION, False)
    flipped.decode("two", 5e6, errors=4)
    assert errors(flipped.end) == ErrorCount(5, 20), "both of the times when it was off"


def figures_of(run: Run, end: int | None = None) -> Any:
    """The figures of the top bar, in a recording that has come to `end`."""
    at = run.end if end is None else end
    snapshot = SimpleNamespace(session=run, track=run.track, cursor_frame=at, live=False, axis=TimeAxis())
    return figures(cast("Any", snapshot))


def test_an_utterance_decoded_again_counts_once_for_the_word_error_rate() -> None:
    run = Run()
    run.decode("clear", 5e6, errors=1)
    for _ in range(3):
        run.decode("noisy", 5e6, errors=9)
    assert figures_of(run).errors == ErrorCount(10, 20)


def test_turns_of_an_ab_do_not_count_for_the_word_error_rate() -> None:
    run = Run()
    run.change(SELECTION, True)
    run.decode("clear", 5e6, errors=1)
    run.decode("noisy", 5e6, errors=2)
    before = figures_of(run).errors
    now, epoch = run.now, run.epoch
    ab(run, 2)
    for end in range(run.end - 1500, run.end + 1, 500):
        assert figures_of(run, end).errors == before
    run.meta["ab"]["ended"] = run.end
    run.now, run.epoch = now, epoch
    run._config()
    assert figures_of(run).errors == before


def test_the_word_error_rate_comes_with_that_of_the_same_words_before() -> None:
    run = Run()
    run.decode("one", 5e6, errors=1)
    run.decode("two", 5e6, errors=9)
    assert figures_of(run).before is None
    run.change(SELECTION, True)
    run.decode("one", 5e6, errors=2)
    found = figures_of(run)
    assert (found.errors, found.before) == (ErrorCount(2, 10), ErrorCount(1, 10))
    run.decode("three", 5e6, errors=3)
    found = figures_of(run)
    assert (found.before, found.unlike, found.scored) == (None, 1, 2)


def test_the_rtf_of_an_ab_is_that_of_its_arm_without_the_warm_up() -> None:
    run = Run(state="closed")
    run.decode("one", 50e6)  # warm-up, as A
    start = run.end
    ab(run, 4)
    a, b = (arm["epoch"] for arm in run.meta["ab"]["arms"])
    run.utterances[0] = replace(run.utterances[0], epochs=(a,))
    run.meta["ab"]["measured_from"] = start
    del run.meta["ab"]["ended"]
    assert run.utterances[-1].epochs == (a,)
    assert (figures_of(run).rtf, figures_of(run).scope) == (pytest.approx(0.8), "arm A")
    assert b not in run.utterances[-1].epochs
    assert figures_of(run).errors == ErrorCount(1, 10)
    assert figures_of(run).before is None  # A is not held against itself
    run.utterances.pop()
    assert figures_of(run, run.utterances[-1].end_frame).before == ErrorCount(1, 10)  # B is against A
