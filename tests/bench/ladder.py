"""The ladder of speeding up a neural net, after Vanhoucke, Senior & Mao (2011): the table in docs/ladder.md.

    python -m tests.bench.ladder
    asrscope bench ladder --json

The rungs are the presets of the groups "The ladder" and "Compressed nets", the plain net and, for reference, the tied
mixtures; each is compared with the preset that it comes after, and with the first. Scoring and whole runs are timed in
turns over the same speech (the senones that a search needs are replayed from its own decode). Words are decoded once
for all rungs that make the same scores, and kept in the cache (`_rounds.Kept`). A rung whose net is not there, or that
cannot be made, stands in the table with the reason.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from app.model.latency import Latency
from pipelines import config as settings
from pipelines.audio import word_errors as wer
from pipelines.config import Config, presets
from pipelines.config.presets import Preset
from pipelines.experiments.audit import Audit, AuditedUtterance
from pipelines.experiments.scoring_replay import Replay, replay, scoring_s, spoken
from pipelines.models import nets
from pipelines.models.opening import open_model
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser, build
from pipelines.scoring import build_scorer
from pipelines.scoring.strategy import never
from profiler.arrays import Array
from profiler.spans import Recorder
from tests.bench import _rounds
from tests.bench._rounds import LANE, Kept, Progress, Side, decoding, interleave, markdown, paired
from tests.bench.corpus import human_speech, speech_for_words

Row = Mapping[str, Any]
PROPER = "ladder-"  # how the names of the rungs begin that each start from the one before
PLAIN = "dnn"  # the net that the word errors of the others are compared with
GROUP, COMPRESSED = "The ladder", "Compressed nets"
REFERENCE = "gmm"  # the teacher of all nets
MAX_AUDIO_S = 8.0
"""Speeds are taken on the first files up to this length: some twenty rungs take their turns, slow ones among them."""
SAME_NAT = 1e-3
"""Scores that differ by no more are the same but for the order of summation (the tests of scoring allow as much)."""


@dataclass
class Rung:
    """A preset, its recogniser and its figures; `missing`: why it could not be made."""

    preset: Preset
    recogniser: Recogniser | None = None
    missing: str = ""
    replays: list[Replay] = field(default_factory=list)
    scores: list[Array] = field(default_factory=list)
    scoring: Side = field(default_factory=lambda: Side("scoring", lambda _: 0.0))
    whole: Side = field(default_factory=lambda: Side("whole", lambda _: 0.0))
    row: dict[str, Any] = field(default_factory=dict)


def listed() -> list[Preset]:
    """The presets of the table: reference, the ladder, the plain net in batches and what is made from it."""
    rungs = [presets.load(name) for name in (*presets.names(GROUP), *presets.names(COMPRESSED))]
    branch = next((i for i, p in enumerate(rungs) if p.after == PLAIN), len(rungs))
    return [presets.load(REFERENCE), *rungs[:branch], presets.load(PLAIN), *rungs[branch:]]


def change(preset: Preset) -> str:
    """The settings of `preset` that differ from the one it comes after, as they are written after --set."""
    if not preset.after:
        return ""
    before = dict(settings.flatten(settings.to_dict(presets.load(preset.after).config)))
    mine = settings.flatten(settings.to_dict(preset.config))
    return " ".join(f"{key}={value}" for key, value in mine if before[key] != value)


class Ladder:
    """Measures all rungs on the same speech."""

    def __init__(self, chosen: Sequence[Preset], items: Sequence[Item], human: Sequence[Item], tell: Progress) -> None:
        self._items, self._human, self._tell = list(items), list(human), tell
        self._kept = Kept("ladder", [*_rounds.speech_key([*items, *human]), *_rounds.sources()])
        self.rungs = [Rung(preset) for preset in chosen]

    def measure(self, rounds: int) -> list[dict[str, Any]]:
        """One row per rung, in order."""
        with threadpool_limits(1):
            for rung in self.rungs:
                self._make(rung)
            there = [rung for rung in self.rungs if rung.recogniser]
            if there:
                self._time(there, rounds)
                self._words(there)
        return [
            {"preset": rung.preset.name, "title": rung.preset.title, "after": rung.preset.after}
            | {"change": change(rung.preset), "block": rung.preset.config.block, "missing": rung.missing or None}
            | rung.row
            for rung in self.rungs
        ]

    def _make(self, rung: Rung) -> None:
        """Front end, graph and search serve all rungs; each has a scorer of its own."""
        config = rung.preset.config
        self._tell(f"making {rung.preset.name}", None)
        first = next((r.recogniser for r in self.rungs if r.recogniser), None)
        try:
            settings.check(config)
            if first is None:
                rung.recogniser = build(config, Recorder(), LANE, self._tell, never)
                return
            if (config.graph, config.search) != (first.config.graph, first.config.search):
                raise settings.ConfigError("its graph or search is not that of the first rung.")
            scorer = build_scorer(config, open_model(config, self._tell, never))
            scorer.warm_up()
            rung.recogniser = Recogniser(config, first.frontend, scorer, first.search)
        except Exception as error:  # whatever it is, the other rungs go on and the table says so
            rung.missing = str(error) if isinstance(error, ValueError) else repr(error)

    def _time(self, rungs: Sequence[Rung], rounds: int) -> None:
        some = list(spoken(self._items, MAX_AUDIO_S))
        audio_s = sum(sound.duration_s for _, sound in some)
        for rung in rungs:
            recogniser = _of(rung)
            recogniser.register(Recorder())
            for _, sound in some:
                features = recogniser.frontend.features(sound.samples, 0, LANE)
                one = replay(recogniser, features)
                scores = np.full((len(features), recogniser.scorer.n_senones), np.nan, np.float32)
                scoring_s(recogniser.scorer, recogniser.config.block, one, scores)
                rung.replays.append(one)
                rung.scores.append(scores)
            rung.scoring.take = partial(_scored, recogniser, rung.replays)
            rung.whole.take = partial(_decoded_s, decoding(recogniser))
        interleave([rung.scoring for rung in rungs], range(len(some)), rounds, partial(self._tell, "scoring, in turns"))
        items = [item for item, _ in some]
        interleave([rung.whole for rung in rungs], items, rounds, partial(self._tell, "whole runs, in turns"))
        first = next((rung for rung in rungs if not rung.preset.after and rung.preset.group), None)
        named = {rung.preset.name: rung for rung in rungs}
        for rung in rungs:
            config, scorer = rung.preset.config, _of(rung).scorer
            frames = sum(map(len, rung.scores))
            frame_s = median(rung.scoring.seconds) / frames
            slower = {"times_before": named.get(rung.preset.after), "times_first": first}
            rung.row |= {
                "ms": frame_s * 1e3,
                **{key: slow and median(paired(slow.scoring, rung.scoring)) for key, slow in slower.items()},
                "rtf": median(rung.whole.seconds) / audio_s,
                "weights_mb": max(law.working_set_bytes for law in scorer.costs().values()) / 1e6,
                "latency": Latency(config.block, scorer.context[1], frame_s * config.block).as_dict(),
                "frames": frames,
            }

    def _words(self, rungs: Sequence[Rung]) -> None:
        """Word errors, those of the plain net first: the others are compared with it."""
        known: list[tuple[Rung, list[str]]] = []
        plain: list[str] | None = None
        n = len(self._items)
        for rung in sorted(rungs, key=lambda r: r.preset.name != PLAIN):
            same = next(((other, words) for other, words in known if _same(rung, other)), None)
            if same is not None:
                rung.row["same_as"] = same[0].preset.name
            else:
                known.append((rung, self._decoded(rung)))
            words = (same or known[-1])[1]
            if rung.preset.name == PLAIN:
                plain = words
            audit = _audit(rung.preset.config, self._items, words[:n], (plain or words)[:n])
            interval = audit.wer_change_interval()
            pairs = zip(self._human, words[n:], strict=True)
            human = wer.total((item.reference, text) for item, text in pairs)
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
        key = _rounds.key_of(config) + (_net_digest(config) if config.model == "dnn" else "")
        kept = self._kept.get(key)
        if kept is not None:
            return list(kept)
        items, decode, words = [*self._items, *self._human], decoding(_of(rung)), []
        for place, item in enumerate(items):
            self._tell(f"decoding by {rung.preset.name}", place / len(items))
            words.append(decode(item)[0])
        self._kept.put(key, words)
        return words


def _of(rung: Rung) -> Recogniser:
    assert rung.recogniser is not None
    return rung.recogniser


def _scored(recogniser: Recogniser, replays: Sequence[Replay], place: int) -> float:
    return scoring_s(recogniser.scorer, recogniser.config.block, replays[place])


def _decoded_s(decode: Callable[[Item], tuple[str, float]], item: Item) -> float:
    return decode(item)[1]


def _same(one: Rung, other: Rung) -> bool:
    """Whether the scores that both make differ by SAME_NAT at most."""
    largest, compared = 0.0, 0
    for a, b in zip(one.scores, other.scores, strict=True):
        both = np.isfinite(a) & np.isfinite(b)
        compared += int(both.sum())
        largest = max(largest, float(np.abs(a[both] - b[both]).max(initial=0.0)))
    return bool(compared) and largest <= SAME_NAT


def _audit(config: Config, items: Sequence[Item], words: Sequence[str], plain: Sequence[str]) -> Audit:
    """Words against those of the plain net, utterance by utterance."""
    audit = Audit(config)
    for item, mine, other in zip(items, words, plain, strict=True):
        known = item.reference
        counts = (wer.scored(known, text) for text in (mine, other))
        audit.utterances.append(AuditedUtterance(item.name, 0, mine, other, known, *counts))
    return audit


def _net_digest(config: Config) -> str:
    file = nets.find(config.dnn.net)
    return "".join(_rounds.digest_of(part.read_bytes()) for part in (file, file.with_suffix(".json")) if part.exists())


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """The table as a bench; `ratio` is what the fastest rung of the ladder proper gains on the first.

    The words of human speech are counted as well unless files are given.
    """
    items = speech_for_words(paths, transcripts)
    ladder = Ladder(listed(), items, [] if paths else human_speech(), progress)
    rows = ladder.measure(repeat)
    timed = [rung for rung in ladder.rungs if rung.preset.group and rung.scoring.seconds]
    proper = [rung for rung in timed if rung.preset.name.startswith(PROPER)]
    gains = [float("nan")]
    if proper:
        fastest = min(proper, key=lambda rung: median(rung.scoring.seconds))
        gains = paired(timed[0].scoring, fastest.scoring)
    return _rounds.result(
        "the same net by a scalar loop, frame by frame",
        gains,
        "scoring time of the first rung / of the fastest of the ladder, median of rounds in turns",
        {
            "same scores, nat": SAME_NAT,
            "words": max((row.get("words", 0) for row in rows), default=0),
            "missing": [row["preset"] for row in rows if row["missing"]],
        },
        rows,
    )


HEAD = "preset", "changes", "scoring, ms", "× before", "× first", "RTF", "WER", "against the plain net", "human"
WEIGHTS = "weights, MB", "latency, ms"
FIGURES = (("times_before", ".2f"), ("times_first", ".1f"), ("rtf", ".3f"), ("wer", ".1%"))


def table(rows: Sequence[Row]) -> str:
    """The table of the page."""
    lines, missing = [], []
    for row in rows:
        changes = " ".join(f"`{part}`" for part in row["change"].split())
        # A rung of the ladder always changes the one above it.
        before = "" if row["preset"].startswith(PROPER) or not changes else f"{row['after']}: "
        begin = [f"`{row['preset']}`", f"{before}{changes}" or "–"]
        if row["missing"]:
            missing.append(f"Not here: `{row['preset']}`. {row['missing']}\n")
            lines.append([*begin, "not here", *["–"] * (len(HEAD) + len(WEIGHTS) - 3)])
            continue
        human = "–" if row["human_errors"] is None else row["human_errors"]
        block, context, scoring = (row["latency"][name] * 1e3 for name in ("block_s", "context_s", "score_s"))
        figures = ["–" if row[key] is None else format(row[key], form) for key, form in FIGURES]
        lines.append(
            [
                *(*begin, f"{row['ms']:.3f}", *figures, _against(row), human),
                *(f"{row['weights_mb']:.1f}", f"{block:.0f} + {context:.0f} + {scoring:.1f}"),
            ]
        )
    return "\n".join([markdown([*HEAD, *WEIGHTS], lines), *missing])


def _against(row: Row) -> str:
    """The change of the word error rate in points."""
    if "same_as" in row:
        return f"= {row['same_as']}"
    if not row["wer_change_ci95"] or row["preset"] == PLAIN:
        return "–"
    low, high = row["wer_change_ci95"]
    return f"{100 * row['wer_change']:+.1f} ({100 * low:+.1f} … {100 * high:+.1f})"


def main(arguments: list[str] | None = None) -> int:
    """Print the table as Markdown."""
    parser = _rounds.command_line("ladder", __doc__)
    parser.add_argument("--repeat", type=int, default=9, metavar="N", help="rounds of timing")
    given = parser.parse_args(arguments)
    print(table(run([], None, given.repeat, _rounds.progress_lines)["rows"]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
