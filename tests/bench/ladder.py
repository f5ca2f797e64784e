"""The ladder of speeding up a neural net, after Vanhoucke, Senior & Mao (2011): the table in docs/ladder.md.

    python -m tests.bench.ladder
    asrscope bench ladder --json

The rungs are the presets of the groups "The ladder" and "Compressed nets", the plain net and, for reference, the tied
mixtures; each is compared with the preset that it comes after, and with the first. Scoring and whole runs are timed in
turns over the same speech (the senones that a search needs are replayed from its own decode). Words are decoded once
for all rungs that make the same scores. A rung whose net is not there, or that cannot be made, stands in the table with
the reason.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from app.model.latency import Latency
from pipelines import config as settings
from pipelines.audio import word_errors as wer
from pipelines.config import presets
from pipelines.config.presets import Preset
from pipelines.experiments.audit import Audit, AuditedUtterance
from pipelines.experiments.scoring_replay import replay, scoring_s, spoken
from pipelines.models.opening import open_model
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser
from pipelines.scoring import build_scorer
from pipelines.scoring.strategy import never
from profiler.arrays import Array
from profiler.spans import Recorder
from tests.bench import _rounds
from tests.bench._rounds import LANE, Kept, Progress, Side, Tree, decoding, interleave, markdown, paired
from tests.bench.corpus import human_speech, speech_for_words

Row = Mapping[str, Any]
PROPER = "ladder-"  # how the names of the rungs begin that each start from the one before
PLAIN = "dnn"  # the net that the word errors of the others are compared with
REFERENCE = "gmm"  # the teacher of all nets
MAX_AUDIO_S = 8.0
"""Speeds are taken on the first files up to this length: some twenty rungs take their turns, slow ones among them."""
SAME_NAT = 1e-3
"""Scores that differ by no more are the same but for the order of summation (the tests of scoring allow as much)."""


def listed() -> list[Preset]:
    """The presets of the table: reference, the ladder, the plain net in batches and what is made from it."""
    rungs = [presets.load(name) for group in ("The ladder", "Compressed nets") for name in presets.names(group)]
    branch = next((i for i, p in enumerate(rungs) if p.after == PLAIN), len(rungs))
    return [presets.load(REFERENCE), *rungs[:branch], presets.load(PLAIN), *rungs[branch:]]


def change(preset: Preset) -> str:
    """The settings of `preset` that differ from the one it comes after, as they are written after --set."""
    if not preset.after:
        return ""
    before, mine = (
        dict(settings.flatten(settings.to_dict(one.config))) for one in (presets.load(preset.after), preset)
    )
    return " ".join(f"{key}={value}" for key, value in mine.items() if before[key] != value)


class Rung:
    """A preset, its recogniser and its figures; `missing`: why it could not be made."""

    scoring: Side
    whole: Side

    def __init__(self, preset: Preset, first: Recogniser | None, tell: Progress) -> None:
        """Front end, graph and search are those of the first rung that could be made; the scorer is its own."""
        self.preset, self.missing = preset, ""
        self.recogniser: Recogniser | None = None
        self.scores: list[Array] = []
        self.row: Tree = {}
        config = preset.config
        tell(f"making {preset.name}", None)
        try:
            settings.check(config)
            if first is None:
                self.recogniser = _rounds.opened(config, tell)
                return
            if (config.graph, config.search) != (first.config.graph, first.config.search):
                raise settings.ConfigError("its graph or search is not that of the first rung.")
            scorer = build_scorer(config, open_model(config, tell, never))
            scorer.warm_up()
            self.recogniser = Recogniser(config, first.frontend, scorer, first.search)
        except Exception as error:  # whatever it is, the other rungs go on and the table says so
            self.missing = str(error) if isinstance(error, ValueError) else repr(error)

    def prepare(self, features: Sequence[Array]) -> None:
        """Record the input of the scorer, and make both sides to be timed."""
        recogniser, block = self.recogniser, self.preset.config.block
        assert recogniser is not None
        recogniser.register(Recorder())
        replays = [replay(recogniser, each) for each in features]
        for each, one in zip(features, replays, strict=True):
            scores = np.full((len(each), recogniser.scorer.n_senones), np.nan, np.float32)
            scoring_s(recogniser.scorer, block, one, scores)
            self.scores.append(scores)
        decode = decoding(recogniser)
        self.scoring = Side("scoring", lambda place: scoring_s(recogniser.scorer, block, replays[place]))
        self.whole = Side("whole", lambda item: decode(item)[1])

    def same(self, other: "Rung") -> bool:
        """Whether the scores that both make differ by SAME_NAT at most."""
        pairs = list(zip(self.scores, other.scores, strict=True))
        apart = np.concatenate([np.abs(a - b)[np.isfinite(a) & np.isfinite(b)] for a, b in pairs])
        return bool(len(apart)) and float(apart.max()) <= SAME_NAT


class Ladder:
    def __init__(self, items: Sequence[Item], human: Sequence[Item], tell: Progress) -> None:
        self._items, self._human, self._tell = list(items), list(human), tell
        self._kept = Kept("ladder", [*items, *human])
        self.rungs: list[Rung] = []

    def measure(self, rounds: int) -> list[Tree]:
        """One row per rung, in order."""
        with threadpool_limits(1):
            for preset in listed():
                first = next((rung.recogniser for rung in self.rungs if rung.recogniser), None)
                self.rungs.append(Rung(preset, first, self._tell))
            if there := [rung for rung in self.rungs if rung.recogniser]:
                self._time(there, rounds)
                self._words(there)
        return [
            {"preset": rung.preset.name, "title": rung.preset.title, "after": rung.preset.after}
            | {"change": change(rung.preset), "block": rung.preset.config.block, "missing": rung.missing or None}
            | rung.row
            for rung in self.rungs
        ]

    def _time(self, rungs: Sequence[Rung], rounds: int) -> None:
        items, sounds = zip(*spoken(self._items, MAX_AUDIO_S), strict=True)
        audio_s = sum(sound.duration_s for sound in sounds)
        for rung in rungs:
            assert rung.recogniser is not None
            rung.prepare([rung.recogniser.frontend.features(sound.samples, 0, LANE) for sound in sounds])
        places, tell = range(len(items)), self._tell
        interleave([rung.scoring for rung in rungs], places, rounds, partial(tell, "scoring, in turns"))
        interleave([rung.whole for rung in rungs], items, rounds, partial(tell, "whole runs, in turns"))
        first = next((rung for rung in rungs if not rung.preset.after and rung.preset.group), None)
        named = {rung.preset.name: rung for rung in rungs}
        for rung in rungs:
            assert rung.recogniser is not None
            block, scorer = rung.preset.config.block, rung.recogniser.scorer
            frames = sum(map(len, rung.scores))
            frame_s = median(rung.scoring.seconds) / frames
            slower = {"times_before": named.get(rung.preset.after), "times_first": first}
            rung.row |= {
                "ms": frame_s * 1e3,
                **{key: slow and median(paired(slow.scoring, rung.scoring)) for key, slow in slower.items()},
                "rtf": median(rung.whole.seconds) / audio_s,
                "weights_mb": max(law.working_set_bytes for law in scorer.costs().values()) / 1e6,
                "latency": Latency(block, scorer.context[1], frame_s * block).as_dict(),
                "frames": frames,
            }

    def _words(self, rungs: Sequence[Rung]) -> None:
        """Word errors, those of the plain net first: the others are compared with it."""
        decoded: list[tuple[Rung, list[str]]] = []
        plain: list[str] | None = None
        n = len(self._items)
        for rung in sorted(rungs, key=lambda r: r.preset.name != PLAIN):
            same = next(((other, words) for other, words in decoded if rung.same(other)), None)
            if same is not None:
                rung.row["same_as"] = same[0].preset.name
            else:
                decoded.append((rung, self._decoded(rung)))
            words = (same or decoded[-1])[1]
            if rung.preset.name == PLAIN:
                plain = words
            audit = Audit(rung.preset.config)
            for item, mine, other in zip(self._items, words, plain or words, strict=False):
                counts = (wer.scored(item.reference, text) for text in (mine, other))
                audit.utterances.append(AuditedUtterance(item.name, 0, mine, other, item.reference, *counts))
            interval = audit.wer_change_interval()
            human = wer.total((item.reference, text) for item, text in zip(self._human, words[n:], strict=True))
            rung.row |= {
                "wer": audit.count.rate,
                "errors": audit.count.errors,
                "words": audit.count.reference_words,
                "wer_change": audit.wer_change if plain else None,
                "wer_change_ci95": list(interval) if plain and interval else None,
                "human_errors": human.errors if human.reference_words else None,
                "human_words": human.reference_words,
            }

    def _decoded(self, rung: Rung) -> list[str]:
        """The words of each item, those of human speech last."""
        config = rung.preset.config
        if (kept := self._kept.get(config)) is not None:
            return list(kept)
        items, decode, words = [*self._items, *self._human], decoding(rung.recogniser), []
        for place, item in enumerate(items):
            self._tell(f"decoding by {rung.preset.name}", place / len(items))
            words.append(decode(item)[0])
        return self._kept.put(config, words)


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> Tree:
    """The table as a bench; `ratio` is what the fastest rung of the ladder proper gains on the first. The words of
    human speech are counted as well unless files are given."""
    items = speech_for_words(paths, transcripts)
    ladder = Ladder(items, [] if paths else human_speech(), progress)
    rows = ladder.measure(repeat)
    timed = [rung for rung in ladder.rungs if rung.preset.group and rung.recogniser]
    gains = [float("nan")]
    if proper := [rung for rung in timed if rung.preset.name.startswith(PROPER)]:
        gains = paired(timed[0].scoring, min((rung.scoring for rung in proper), key=lambda side: median(side.seconds)))
    agreement = {
        "same scores, nat": SAME_NAT,
        "words": max((row.get("words", 0) for row in rows), default=0),
        "missing": [row["preset"] for row in rows if row["missing"]],
    }
    meaning = "scoring time of the first rung / of the fastest of the ladder, median of rounds in turns"
    return _rounds.result("the same net by a scalar loop, frame by frame", gains, meaning, agreement, rows)


HEAD = (
    *("preset", "changes", "scoring, ms", "× before", "× first", "RTF", "WER", "against the plain net", "human"),
    *("weights, MB", "latency, ms"),
)
FIGURES = (("times_before", ".2f"), ("times_first", ".1f"), ("rtf", ".3f"), ("wer", ".1%"))


def table(rows: Sequence[Row]) -> str:
    lines, missing = [], []
    for row in rows:
        changes = " ".join(f"`{part}`" for part in row["change"].split())
        # A rung of the ladder always changes the one above it.
        before = "" if row["preset"].startswith(PROPER) or not changes else f"{row['after']}: "
        begin = [f"`{row['preset']}`", f"{before}{changes}" or "–"]
        if row["missing"]:
            missing.append(f"Not here: `{row['preset']}`. {row['missing']}\n")
            lines.append([*begin, "not here", *["–"] * (len(HEAD) - 3)])
            continue
        human = "–" if row["human_errors"] is None else row["human_errors"]
        block, context, scoring = (row["latency"][name] * 1e3 for name in ("block_s", "context_s", "score_s"))
        figures = ["–" if row[key] is None else format(row[key], form) for key, form in FIGURES]
        against = "–"
        if "same_as" in row:
            against = f"= {row['same_as']}"
        elif row["wer_change_ci95"] and row["preset"] != PLAIN:
            change, low, high = (100 * one for one in (row["wer_change"], *row["wer_change_ci95"]))
            against = f"{change:+.1f} ({low:+.1f} … {high:+.1f})"
        latency = f"{block:.0f} + {context:.0f} + {scoring:.1f}"
        lines.append([*begin, f"{row['ms']:.3f}", *figures, against, human, f"{row['weights_mb']:.1f}", latency])
    return "\n".join([markdown(HEAD, lines), *missing]).rstrip("\n")


if __name__ == "__main__":
    sys.exit(_rounds.printing_table("ladder", __doc__, 9, run, table))
