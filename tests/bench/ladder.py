"""The ladder of speeding up a neural net, after Vanhoucke, Senior & Mao (2011): the table in docs/ladder.md.

    python -m tests.bench.ladder --picture docs/ladder.png > docs/ladder.md
    asrscope bench ladder --json

The rungs are the presets of the groups "The ladder" and "Compressed nets", the plain net and, for reference, the
tied mixtures; each is held against the preset that it says it comes after, and against the first. Scoring and whole
runs are timed in turns over the same speech (what a search asks for is replayed from its own decode). Words are
decoded once for all rungs that make the same scores, which is found by comparing them, and kept in the cache
(`_rounds.Kept`). A rung whose net is not there, or that cannot be made, stands in the table with the reason.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
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
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.null_writer import NullWriter
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser, build
from pipelines.scoring import build_scorer
from pipelines.scoring.strategy import never
from profiler.arrays import Array
from profiler.machine import describe
from profiler.machine.roofs import calibration
from profiler.spans import Recorder
from tests.bench._data import human_speech, speech_for_words
from tests.bench._ladder_text import PLAIN, PROPER, markdown
from tests.bench._rounds import (
    LANE,
    Kept,
    Progress,
    Side,
    digest_of,
    interleave,
    key_of,
    paired,
    said,
    sources,
)

NAME = "ladder"
GROUP, BESIDE = "The ladder", "Compressed nets"
REFERENCE = "gmm"
"""The teacher of all nets."""

MAX_AUDIO_S = 8.0
"""Speeds are taken on the first files up to this length: some twenty rungs take their turns, slow ones among them."""

SAME_NAT = 1e-3
"""Scores that differ by no more are the same but for the order of summation (the tests of scoring allow as much)."""


@dataclass
class Rung:
    """A preset, what it was made into, and what was found; `missing`: why it could not be made."""

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
    rungs = [presets.load(name) for name in (*presets.names(GROUP), *presets.names(BESIDE))]
    branch = next((i for i, p in enumerate(rungs) if p.after == PLAIN), len(rungs))
    return [presets.load(REFERENCE), *rungs[:branch], presets.load(PLAIN), *rungs[branch:]]


def change(preset: Preset) -> str:
    """What `preset` sets otherwise than the one it comes after, as it is written after --set."""
    if not preset.after:
        return ""
    before = dict(settings.flatten(settings.to_dict(presets.load(preset.after).config)))
    mine = settings.flatten(settings.to_dict(preset.config))
    return " ".join(f"{key}={value}" for key, value in mine if before[key] != value)


class Ladder:
    """Measures all rungs on the same speech."""

    def __init__(
        self, chosen: Sequence[Preset], items: Sequence[Item], human: Sequence[Item], tell: Progress
    ) -> None:
        self._items, self._human, self._tell = list(items), list(human), tell
        self._kept = Kept(NAME, [*said([*items, *human]), *sources()])
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
        told = partial(self._tell, "scoring, in turns")
        interleave([rung.scoring for rung in rungs], range(len(some)), rounds, told)
        told = partial(self._tell, "whole runs, in turns")
        interleave([rung.whole for rung in rungs], [item for item, _ in some], rounds, told)
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
        """Word errors, those of the plain net first: of it the others say how much they differ."""
        decoded: list[tuple[Rung, list[str]]] = []
        plain: list[str] | None = None
        n = len(self._items)
        for rung in sorted(rungs, key=lambda r: r.preset.name != PLAIN):
            like = [
                (other, words) for other, words in decoded if _difference(rung, other) is not None
            ]
            if like:
                other, words = like[0]
                rung.row |= {
                    "same_as": other.preset.name,
                    "same_nat": _difference(rung, other),
                }
            else:
                words = self._decoded(rung)
                decoded.append((rung, words))
            if rung.preset.name == PLAIN:
                plain = words
            audit = _audit(rung.preset.config, self._items, words[:n], (plain or words)[:n])
            interval = audit.wer_change_interval()
            heard = zip(self._human, words[n:], strict=True)
            human = wer.total((item.reference, text) for item, text in heard)
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
        """What is heard in each item, those of human speech last."""
        config = rung.preset.config
        key = key_of(config) + (_net_digest(config) if config.model == "dnn" else "")
        kept = self._kept.get(key)
        if kept is not None:
            return list(kept)
        items = [*self._items, *self._human]
        decoder = _decoder(_of(rung))
        words = []
        for place, item in enumerate(items):
            self._tell(f"decoding by {rung.preset.name}", place / len(items))
            words.append(decoder.run([item]).utterances[-1].hypothesis)
        self._kept.put(key, words)
        return words


def _of(rung: Rung) -> Recogniser:
    assert rung.recogniser is not None
    return rung.recogniser


def _scored(rung: Rung, place: int) -> float:
    recogniser = _of(rung)
    return scoring_s(recogniser.scorer, recogniser.config.block, rung.replays[place])


def _decoder(recogniser: Recogniser) -> Decoder:
    """With the recorder off."""
    return Decoder(recogniser, Recorder(), LANE, NullWriter(), Control())


def _decoded_s(recogniser: Recogniser, item: Item) -> float:
    return _decoder(recogniser).run([item]).wall_ns / 1e9


def _times(slow: Rung | None, fast: Rung) -> float | None:
    return None if slow is None else median(paired(slow.scoring, fast.scoring))


def _active_share(rung: Rung) -> float | None:
    """Share of the senones that the search needs, where a scorer is told."""
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


def _audit(
    config: Config, items: Sequence[Item], words: Sequence[str], plain: Sequence[str]
) -> Audit:
    """Words beside those of the plain net, utterance by utterance."""
    found = Audit(config)
    for item, mine, other in zip(items, words, plain, strict=True):
        known = item.reference
        counts = (wer.scored(known, text) for text in (mine, other))
        found.utterances.append(AuditedUtterance(item.name, 0, mine, other, known, *counts))
    return found


def _net_digest(config: Config) -> str:
    file = nets.find(config.dnn.net)
    return "".join(
        digest_of(part.read_bytes()) for part in (file, file.with_suffix(".json")) if part.exists()
    )


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


def _machine(net_bytes: float, progress: Progress) -> dict[str, Any]:
    """The machine in words and the roofs that the ladder runs into, on one thread."""
    roofs_here = calibration.load_or_measure(1, progress, never)
    gemm, scalar = roofs_here.rate("gemm"), roofs_here.rate("scalar")
    read = roofs_here.bandwidth(net_bytes)
    return describe.describe() | {
        "gemm_gflops": gemm.median / 1e9 if gemm else None,
        "scalar_gflops": scalar.median / 1e9 if scalar else None,
        "read_gbytes_per_s": read.median / 1e9 if read else None,
    }


def run(
    paths: Sequence[str],
    transcripts: str | None,
    repeat: int,
    progress: Progress,
    human: Path | None = None,
) -> dict[str, Any]:
    """The table as a bench; `ratio` is what the fastest rung of the ladder proper gains on the first.

    `human`: a folder of labelled speech, whose words are counted as well unless files are given.
    """
    items = speech_for_words(paths, transcripts)
    spoken_by_humans = [] if paths else human_speech(human)
    load = psutil.getloadavg()[0]
    ladder = Ladder(listed(), items, spoken_by_humans, progress)
    rows = ladder.measure(repeat)
    proper = [rung for rung in ladder.rungs if rung.preset.group and rung.scoring.seconds]
    fastest = min(
        (rung for rung in proper if rung.preset.name.startswith(PROPER)),
        key=lambda rung: median(rung.scoring.seconds),
        default=None,
    )
    gains = [float("nan")]
    if fastest is not None:
        gains = paired(proper[0].scoring, fastest.scoring)
    plain = nets.read_card(nets.find(settings.Config().dnn.net).with_suffix(".json"))
    return {
        "peer": "the same net by a scalar loop, frame by frame",
        "ratio": median(gains),
        "ratio_min": min(gains),
        "ratio_max": max(gains),
        "ratio_meaning": "scoring time of the first rung / of the fastest of the ladder, median of rounds in turns",
        "agreement": {
            "same scores, nat": SAME_NAT,
            "words": max((row.get("words", 0) for row in rows), default=0),
            "missing": [row["preset"] for row in rows if row["missing"]],
        },
        "rows": rows,
        "rounds": repeat,
        "net": {
            "parameters": plain.n_parameters,
            "of_outputs": plain.senones * (1 + (plain.layers[-1].outputs if plain.layers else 0)),
        },
        "machine": _machine(4.0 * plain.n_parameters, progress),
        "measured_at": time.time(),
        "load_before": load,
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the table as Markdown, and draw it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ladder", description=__doc__)
    parser.add_argument("--audio", metavar="FILE", nargs="+", action="extend", default=[])
    parser.add_argument("--transcripts", metavar="FILE.tsv")
    parser.add_argument("--human", metavar="FOLDER", type=Path)
    parser.add_argument("--repeat", type=int, default=9, metavar="N", help="rounds of timing")
    parser.add_argument("--picture", metavar="FILE", type=Path, help=".png, .svg or .pdf")
    given = parser.parse_args(arguments)

    def progress(title: str, fraction: float | None) -> None:
        sys.stderr.write(f"{title}{'' if fraction is None else f' {fraction:.0%}'}\n")

    tree = run(given.audio, given.transcripts, given.repeat, progress, given.human)
    print(markdown(tree, given.picture))
    if given.picture:
        from tests.bench._ladder_picture import ladder_picture

        ladder_picture(tree, given.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
