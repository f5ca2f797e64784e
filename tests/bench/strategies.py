"""What each way of saving in GMM scoring buys and costs: the table in docs/strategies.md.

    python -m tests.bench.strategies > docs/strategies.md
    asrscope bench strategies --json

For every strategy of the four layers, alone and combined, on the model with tied codebooks and on the continuous
one: work done of the exact work, scoring time of exact scoring at block 1 and 16 (interleaved; what a search asks
for is replayed from its own decode, so that lazy strategies are timed as they run), score error, agreement of the
best senone and word errors (`pipelines.audit`). Speed is taken anew each time; audits, which do not depend on the
machine, are kept in the cache under the digest of configuration, speech and sources, so that an interrupted table
goes on where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import pipelines
from pipelines import audit
from pipelines import config as settings
from pipelines.config import Config, Value, assign
from pipelines.playlist import Item
from pipelines.recogniser import Recogniser, build
from pipelines.scoring.selection import never
from profiler.paths import cache_dir
from profiler.spans import NullLane, Recorder
from tests.bench.gmm import speech_for_words

Array = np.ndarray[Any, Any]
Progress = Callable[[str, float | None], None]
Settings = dict[str, Value]

LANE = NullLane()
MODELS = ("ptm", "continuous")
BLOCKS = (1, 16)
EXACT = "exact"
MOST_AUDIO_S = 12.0
"""Speeds are taken on the first files up to this length: some forty configurations take their turns."""
AT_ONCE = 8
"""Configurations audited together: each may hold prepared lists of some 100 MB."""

STRATEGIES: dict[str, tuple[str, Settings]] = {
    EXACT: ("", {}),
    "every 2nd frame": ("frame", {"frames.skip": 2}),
    "every 3rd frame": ("frame", {"frames.skip": 3}),
    "conditional, at most 1 of 2 skipped": (
        "frame",
        {"frames.skip": 2, "frames.rule": "conditional"},
    ),
    "conditional, at most 2 of 3 skipped": (
        "frame",
        {"frames.skip": 3, "frames.rule": "conditional"},
    ),
    "asked for by the search": ("GMM", {"gmm.senones": "asked"}),
    "CI selection, beam 23 (1e-10)": ("GMM", {"gmm.senones": "ci", "gmm.ci_beam": 23.0}),
    "CI selection, beam 10": ("GMM", {"gmm.senones": "ci"}),
    "CI selection, at most 1 500 senones": ("GMM", {"gmm.senones": "ci", "gmm.ci_cap": 1500}),
    "top 4": ("Gaussian", {"gmm.selection.method": "top-n"}),
    "last frame's top 4 first": ("Gaussian", {"gmm.selection.method": "last-top-n"}),
    "VQ shortlist, flat": ("Gaussian", {"gmm.selection.method": "vq"}),
    "VQ shortlist, tree": ("Gaussian", {"gmm.selection.method": "vq-tree"}),
    "VQ table of scores": ("Gaussian", {"gmm.selection.method": "vq-table"}),
    "clusters": ("Gaussian", {"gmm.selection.method": "clusters"}),
    "maximum": ("component", {"gmm.component": "max"}),
    "8 bit": ("component", {"gmm.component": "int8"}),
    "partial distance": ("component", {"gmm.component": "partial-distance"}),
}
"""By title: the layer and the settings that differ from exact scoring."""

COMBINED: dict[str, Settings] = {
    "conditional 2 + CI + VQ": {
        "frames.skip": 2,
        "frames.rule": "conditional",
        "gmm.senones": "ci",
        "gmm.selection.method": "vq",
    },
    "VQ + 8 bit": {"gmm.selection.method": "vq", "gmm.component": "int8"},
    "CI + VQ": {"gmm.senones": "ci", "gmm.selection.method": "vq"},
    "asked + VQ": {"gmm.senones": "asked", "gmm.selection.method": "vq"},
    "asked and CI + VQ + 8 bit": {
        "gmm.senones": "asked-ci",
        "gmm.selection.method": "vq",
        "gmm.component": "int8",
    },
    "VQ + maximum": {"gmm.selection.method": "vq", "gmm.component": "max"},
    "top 4 + partial distance": {
        "gmm.selection.method": "top-n",
        "gmm.component": "partial-distance",
    },
    "asked + top 4": {"gmm.senones": "asked", "gmm.selection.method": "top-n"},
    "every 2nd frame + top 4": {"frames.skip": 2, "gmm.selection.method": "top-n"},
}


def configurations(model: str) -> Iterator[tuple[str, str, Config]]:
    """(title, layer, configuration) of every strategy and combination that `model` has; exact comes first."""
    base = assign(Config(), {"model": model})
    every = STRATEGIES | {title: ("combined", changed) for title, changed in COMBINED.items()}
    for title, (layer, changed) in every.items():
        config = assign(base, changed)
        try:
            yield title, layer, settings.check(config)
        except settings.ConfigError:
            continue


class Table:
    """One row per strategy and model."""

    def __init__(self, items: Sequence[Item], results: Path, progress: Progress) -> None:
        self._items, self._results, self._progress = list(items), results, progress
        names = [f"{item.name}:{item.reference}" for item in self._items]
        self._digest = hashlib.sha256("\n".join([*names, *_sources()]).encode()).hexdigest()

    def rows(self, rounds: int) -> list[dict[str, Any]]:
        """Speeds and audits of all strategies."""
        found = []
        for model in MODELS:
            listed = list(configurations(model))
            configs = [config for _, _, config in listed]
            both = zip(self._speeds(configs, rounds), self._audits(configs), strict=True)
            for (title, layer, _), (speed, audited) in zip(listed, both, strict=True):
                row = {"model": model, "layer": layer, "strategy": title}
                found.append(row | speed | audited)
        return found

    def _audits(self, configs: Sequence[Config]) -> list[dict[str, Any]]:
        """What `pipelines.audit` says of each, in groups that share the exact scores."""
        files = [self._kept(config) for config in configs]
        missing = [i for i, file in enumerate(files) if not file.exists()]
        for at in range(0, len(missing), AT_ONCE):
            some = missing[at : at + AT_ONCE]
            found = audit.audits([configs[i] for i in some], self._items, self._progress, never)
            for i, one in zip(some, found, strict=True):
                _store(files[i], one)
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]

    def _kept(self, config: Config) -> Path:
        text = json.dumps(settings.to_dict(config), sort_keys=True)
        key = hashlib.sha256(f"{self._digest}{text}".encode()).hexdigest()[:24]
        return self._results / f"{key}.json"

    def _speeds(self, configs: Sequence[Config], rounds: int) -> list[dict[str, float]]:
        """Time of each over that of the first, the median of paired rounds, at each block size."""
        first = configs[0]
        with threadpool_limits(1):
            self._progress(f"{first.model}: making the recogniser", None)
            recogniser = build(first, Recorder(), LANE, self._progress, never)
            speech = _features(recogniser, self._items)
            ready = [
                recogniser.scorer.make_ready(config, self._progress, never) for config in configs
            ]
            taken: dict[int, list[list[float]]] = {block: [] for block in BLOCKS}
            frames = sum(len(features) for features in speech)
            for block in BLOCKS:
                replays = []
                for config, prepared in zip(configs, ready, strict=True):
                    recogniser.configure(settings.replace(config, "block", block), prepared)
                    replays.append([_asked(recogniser, features) for features in speech])
                for turn in range(rounds):
                    self._progress(f"{first.model}, block {block}: speed", turn / rounds)
                    times = [0.0] * len(configs)
                    for place, features in enumerate(speech):
                        for step in range(len(configs)):
                            i = (turn + place + step) % len(configs)
                            config = settings.replace(configs[i], "block", block)
                            recogniser.configure(config, ready[i])
                            times[i] += _scoring_s(recogniser, features, replays[i][place])
                    taken[block].append(times)
        return [
            {
                f"{name}_block_{block}": float(value)
                for block in BLOCKS
                for name, value in (
                    ("us", median(times[i] for times in taken[block]) / frames * 1e6),
                    ("time", median(times[i] / times[0] for times in taken[block])),
                )
            }
            for i in range(len(configs))
        ]


def _store(file: Path, found: audit.Audit) -> None:
    interval = found.wer_change_interval()
    row = {
        "shares": found.shares,
        "score_error": found.near.mean,
        "same_best": found.agreement,
        "wer": found.count.rate,
        "wer_change": found.wer_change,
        "wer_change_ci95": None if interval is None else list(interval),
        "words": found.exact_count.reference_words,
    }
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps(row), encoding="utf-8")
    unfinished.rename(file)


def _sources() -> list[str]:
    """Digests of what decides an audit, so that a kept one never outlives its code."""
    folder = Path(str(pipelines.__file__)).parent
    rooms = ("scoring", "search", "models", "frontend", "config")
    files = sorted(file for room in rooms for file in (folder / room).rglob("*.py"))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in (*files, folder / "audit.py")]


def _features(recogniser: Recogniser, items: Sequence[Item]) -> list[Array]:
    from pipelines import audio

    found: list[Array] = []
    left = MOST_AUDIO_S
    recogniser.register(Recorder())
    for item in items:
        sound = audio.load(item.path)
        if found and sound.duration_s > left:
            continue
        left -= sound.duration_s
        found.append(recogniser.frontend.features(sound.samples, 0, LANE))
    return found


def _asked(recogniser: Recogniser, features: Array) -> list[Array | None]:
    """Per frame, what the search asks for when it is given this scorer's scores; None where it is not asked."""
    scorer, search, block = recogniser.scorer, recogniser.search, recogniser.config.block
    if not scorer.lazy:
        return [None] * len(features)
    scorer.reset()
    search.start(0)
    asked: list[Array | None] = []
    for at in range(0, len(features), block):
        part = features[at : at + block]
        state = scorer.prepare(part, at, LANE)
        for t in range(len(part)):
            wanted = np.array(search.wanted())
            asked.append(wanted)
            search.advance(scorer.frame(state, t, wanted)[None], at + t)
    return asked


def _scoring_s(recogniser: Recogniser, features: Array, asked: Sequence[Array | None]) -> float:
    """Seconds of scoring alone, in the blocks configured."""
    scorer, block = recogniser.scorer, recogniser.config.block
    scorer.reset()
    start = time.perf_counter()
    for at in range(0, len(features), block):
        part = features[at : at + block]
        if not scorer.lazy:
            scorer.score(part, at, LANE)
            continue
        state = scorer.prepare(part, at, LANE)
        for t in range(len(part)):
            scorer.frame(state, t, asked[at + t])
    return time.perf_counter() - start


def run(
    paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress
) -> dict[str, Any]:
    """The table as a bench; `ratio` is what the fastest strategy within 2 points of WER gains at block 1."""
    items = speech_for_words(paths, transcripts)
    rows = Table(items, cache_dir("bench", "strategies"), progress).rows(repeat)
    good = [
        row
        for row in rows
        if row["model"] == "continuous"
        and row["wer_change"] is not None
        and row["wer_change"] <= 0.02
    ]
    gains = [1 / row["time_block_1"] for row in good] or [float("nan")]
    return {
        "peer": "exact scoring of the same model",
        "ratio": max(gains),
        "ratio_min": min(gains),
        "ratio_max": max(gains),
        "ratio_meaning": "time of dense scoring / of the fastest strategy that loses at most 2 points of WER, "
        "continuous model, block 1; least and most are those of all such strategies",
        "agreement": {"words": rows[0]["words"], "files": len(items)},
        "rows": rows,
    }


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table for the documentation."""
    lines = []
    for model in MODELS:
        mine = [row for row in rows if row["model"] == model]
        exact = mine[0]
        lines += [
            f"## {model}",
            "",
            f"Exact scoring takes {exact['us_block_1']:.0f} µs a frame at block 1 and "
            f"{exact['us_block_16']:.0f} µs at block 16; "
            f"its word error rate is {exact['wer']:.1%} of {exact['words']} words.",
            "",
            "| layer | strategy | Gaussians | senones | components | time, block 1 | time, block 16 | score error, nat "
            "| same best senone | WER change, points (95 % interval) |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        lines += ["| " + " | ".join(_cells(row)) + " |" for row in mine[1:]]
        lines.append("")
    return "\n".join(lines)


def _cells(row: dict[str, Any]) -> list[str]:
    shares = row["shares"]
    low, high = row["wer_change_ci95"] or (float("nan"), float("nan"))
    return [
        row["layer"],
        row["strategy"],
        *(
            f"{shares[name]:.1%}" if name in shares else "–"
            for name in ("gaussians", "senones", "components")
        ),
        *(f"{row[f'time_block_{block}']:.2f}" for block in BLOCKS),
        f"{row['score_error']:.2g}",
        f"{row['same_best']:.0%}",
        f"{100 * row['wer_change']:+.1f} ({100 * low:+.1f} … {100 * high:+.1f})",
    ]


HEAD = """# Strategies of GMM scoring

Made by `python -m tests.bench.strategies > docs/strategies.md`. Shares and times are of exact scoring by the same model
(time: scoring alone, one thread, median of interleaved rounds; a time above 1 is a loss). Gaussians counts Gaussians
evaluated, components what enters the mixtures. Score error: mean difference in nat over the senones within 20 nat of
the best. Words: the first sentences of the synthetic test corpus, never used for tuning; the interval is a paired
bootstrap over sentences.
"""


def main(arguments: list[str] | None = None) -> int:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.strategies", description=__doc__)
    parser.add_argument("--audio", metavar="FILE", nargs="+", action="extend", default=[])
    parser.add_argument("--transcripts", metavar="FILE.tsv")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="rounds of timing")
    given = parser.parse_args(arguments)

    def progress(title: str, fraction: float | None) -> None:
        sys.stderr.write(f"{title}{'' if fraction is None else f' {fraction:.0%}'}\n")

    tree = run(given.audio, given.transcripts, given.repeat, progress)
    print(HEAD)
    print(markdown(tree["rows"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
