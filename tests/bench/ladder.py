"""The ladder of speeding up a neural net, after Vanhoucke, Senior & Mao (2011): the table in docs/ladder.md.

    python -m tests.bench.ladder
    asrscope bench ladder --json

The rungs are the presets of the groups "The ladder" and "Compressed nets", the plain net and, for reference, the tied
mixtures; each is compared with the preset that it comes after, and with the first. Scoring and whole runs are timed in
turns over the same speech (the senones that a search needs are replayed from its own decode). Words are decoded once
for all rungs that make the same scores, and kept in the cache (`_rounds.Kept`). A rung whose net is not there, or that
cannot be made, stands in the table with the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
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
from tests.bench._data import human_speech, speech_for_words
from tests.bench._measured import Table, known
from tests.bench._rounds import (
    LANE,
    Kept,
    Progress,
    Side,
    command_line,
    decoded,
    digest_of,
    interleave,
    key_of,
    paired,
    progress_lines,
    result,
    sources,
    speech_key,
)

Row = Mapping[str, Any]

NAME = "ladder"
PROPER = "ladder-"
"""How the names of the rungs begin that each start from the one before."""
PLAIN = "dnn"
"""The net that the word errors of the others are compared with."""
NONE = "–"
GROUP, COMPRESSED = "The ladder", "Compressed nets"
REFERENCE = "gmm"
"""The teacher of all nets."""

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
        self._kept = Kept(NAME, [*speech_key([*items, *human]), *sources()])
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
        return [_described(rung) | rung.row for rung in self.rungs]

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

    # ---- time -------------------------------------------------------------------------------------

    def _time(self, rungs: Sequence[Rung], rounds: int) -> None:
        some = list(spoken(self._items, MAX_AUDIO_S))
        audio_s, frames = sum(sound.duration_s for _, sound in some), 0
        for rung in rungs:
            recogniser = _of(rung)
            recogniser.register(Recorder())
            frames = 0
            for _, sound in some:
                features = recogniser.frontend.features(sound.samples, 0, LANE)
                frames += len(features)
                one = replay(recogniser, features)
                scores = np.full((len(features), recogniser.scorer.n_senones), np.nan, np.float32)
                scoring_s(recogniser.scorer, recogniser.config.block, one, scores)
                rung.replays.append(one)
                rung.scores.append(scores)
            rung.scoring.take = partial(_scored, rung)
            rung.whole.take = partial(_decoded_s, recogniser)
        scoring, whole = [rung.scoring for rung in rungs], [rung.whole for rung in rungs]
        interleave(scoring, range(len(some)), rounds, partial(self._tell, "scoring, in turns"))
        items = [item for item, _ in some]
        interleave(whole, items, rounds, partial(self._tell, "whole runs, in turns"))
        first = next((rung for rung in rungs if not rung.preset.after and rung.preset.group), None)
        named = {rung.preset.name: rung for rung in rungs}
        for rung in rungs:
            before, config = named.get(rung.preset.after), rung.preset.config
            laws = _of(rung).scorer.costs().values()
            frame_s = median(rung.scoring.seconds) / frames
            waits = Latency(config.block, _of(rung).scorer.context[1], frame_s * config.block)
            rung.row |= {
                "ms": frame_s * 1e3,
                "times_before": _times(before, rung),
                "times_first": _times(first, rung),
                "rtf": median(rung.whole.seconds) / audio_s,
                "weights_mb": max(law.working_set_bytes for law in laws) / 1e6,
                "latency": waits.as_dict(),
                "asked": _active_share(rung),
                "frames": frames,
            }

    # ---- words ------------------------------------------------------------------------------------

    def _words(self, rungs: Sequence[Rung]) -> None:
        """Word errors, those of the plain net first: the others are compared with it."""
        known: list[tuple[Rung, list[str]]] = []
        plain: list[str] | None = None
        n = len(self._items)
        for rung in sorted(rungs, key=lambda r: r.preset.name != PLAIN):
            differences = ((other, _difference(rung, other), words) for other, words in known)
            same = next((one for one in differences if one[1] is not None), None)
            if same is not None:
                other, nat, words = same
                rung.row |= {"same_as": other.preset.name, "same_nat": nat}
            else:
                words = self._decoded(rung)
                known.append((rung, words))
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
        key = key_of(config) + (_net_digest(config) if config.model == "dnn" else "")
        kept = self._kept.get(key)
        if kept is not None:
            return list(kept)
        items = [*self._items, *self._human]
        words = []
        for place, item in enumerate(items):
            self._tell(f"decoding by {rung.preset.name}", place / len(items))
            words.append(decoded(_of(rung), item).hypothesis)
        self._kept.put(key, words)
        return words


def _of(rung: Rung) -> Recogniser:
    assert rung.recogniser is not None
    return rung.recogniser


def _scored(rung: Rung, place: int) -> float:
    recogniser = _of(rung)
    return scoring_s(recogniser.scorer, recogniser.config.block, rung.replays[place])


def _decoded_s(recogniser: Recogniser, item: Item) -> float:
    return float(decoded(recogniser, item).wall_ns / 1e9)


def _times(slow: Rung | None, fast: Rung) -> float | None:
    return None if slow is None else median(paired(slow.scoring, fast.scoring))


def _active_share(rung: Rung) -> float | None:
    """Share of the senones that the search needs, for a lazy scorer."""
    active = [len(a) for one in rung.replays for a in one.active if a is not None]
    return float(np.mean(active)) / _of(rung).scorer.n_senones if active else None


def _difference(one: Rung, other: Rung) -> float | None:
    """The largest difference in nat of the scores that both make, where it is at most SAME_NAT."""
    largest, compared = 0.0, 0
    for a, b in zip(one.scores, other.scores, strict=True):
        both = np.isfinite(a) & np.isfinite(b)
        compared += int(both.sum())
        largest = max(largest, float(np.abs(a[both] - b[both]).max(initial=0.0)))
    return largest if compared and largest <= SAME_NAT else None


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
    return "".join(digest_of(part.read_bytes()) for part in (file, file.with_suffix(".json")) if part.exists())


def _described(rung: Rung) -> dict[str, Any]:
    preset = rung.preset
    return {
        "preset": preset.name,
        "title": preset.title,
        "after": preset.after,
        "change": change(preset),
        "block": preset.config.block,
        "missing": rung.missing or None,
    }


def run(
    paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress, human: Path | None = None
) -> dict[str, Any]:
    """The table as a bench; `ratio` is what the fastest rung of the ladder proper gains on the first.

    `human`: a folder of labelled speech, whose words are counted as well unless files are given.
    """
    items = speech_for_words(paths, transcripts)
    ladder = Ladder(listed(), items, [] if paths else human_speech(human), progress)
    rows = ladder.measure(repeat)
    timed = [rung for rung in ladder.rungs if rung.preset.group and rung.scoring.seconds]
    proper = [rung for rung in timed if rung.preset.name.startswith(PROPER)]
    gains = [float("nan")]
    if proper:
        fastest = min(proper, key=lambda rung: median(rung.scoring.seconds))
        gains = paired(timed[0].scoring, fastest.scoring)
    return result(
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


def markdown(rows: Sequence[Row]) -> str:
    """The table of the page."""

    def figure(key: str, form: str) -> Callable[[Row], str | None]:
        return lambda row: None if row["missing"] else known(row[key], form)

    table = Table.of(
        rows,
        ("preset", lambda row: f"`{row['preset']}`"),
        ("changes", _changes),
        ("scoring, ms", lambda row: "not here" if row["missing"] else f"{row['ms']:.3f}"),
        ("× before", figure("times_before", ".2f")),
        ("× first", figure("times_first", ".1f")),
        ("RTF", figure("rtf", ".3f")),
        ("WER", figure("wer", ".1%")),
        ("against the plain net", _change),
        ("human", figure("human_errors", "d")),
        ("weights, MB", figure("weights_mb", ".1f")),
        ("latency, ms", lambda row: None if row["missing"] else _latency(row["latency"])),
    )
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["missing"]:
            reasons.setdefault(row["missing"], []).append(f"`{row['preset']}`")
    missing = [f"Not here: {', '.join(names)}. {reason}\n" for reason, names in reasons.items()]
    return "\n".join([table.markdown(), *missing])


def _changes(row: Row) -> str:
    if not row["change"]:
        return NONE
    changes = " ".join(f"`{part}`" for part in row["change"].split())
    # A rung of the ladder always changes the one above it.
    return changes if row["preset"].startswith(PROPER) else f"{row['after']}: {changes}"


def _change(row: Row) -> str:
    if "same_as" in row:
        return f"= {row['same_as']}"
    if row["missing"] or not row["wer_change_ci95"] or row["preset"] == PLAIN:
        return NONE
    low, high = row["wer_change_ci95"]
    return f"{100 * row['wer_change']:+.1f} ({100 * low:+.1f} … {100 * high:+.1f})"


def _latency(parts: Mapping[str, float]) -> str:
    block, context, scoring = (parts[name] * 1e3 for name in ("block_s", "context_s", "score_s"))
    return f"{block:.0f} + {context:.0f} + {scoring:.1f}"


def main(arguments: list[str] | None = None) -> int:
    """Print the table as Markdown."""
    parser = command_line("ladder", __doc__)
    parser.add_argument("--audio", metavar="FILE", nargs="+", action="extend", default=[])
    parser.add_argument("--transcripts", metavar="FILE.tsv")
    parser.add_argument("--human", metavar="FOLDER", type=Path)
    parser.add_argument("--repeat", type=int, default=9, metavar="N", help="rounds of timing")
    given = parser.parse_args(arguments)

    tree = run(given.audio, given.transcripts, given.repeat, progress_lines, given.human)
    print(markdown(tree["rows"]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
