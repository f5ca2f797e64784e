"""What each strategy of GMM scoring saves and costs: the table in docs/strategies.md.

    python -m tests.bench.strategies > docs/strategies.md
    asrscope bench strategies --json

For every strategy of the four layers, alone and combined, on the model with tied codebooks and on the continuous one:
work done of the exact work, scoring time relative to exact scoring at block 1 and 16 (interleaved; the senones that a
search needs are replayed from its own decode, so that lazy strategies are timed as they run), score error, agreement of
the best senone and word errors (`pipelines.experiments.audit`). Speed is measured each time; audits, which do not
depend on the machine, are kept in the cache under the digest of configuration, speech and sources, so that an
interrupted table goes on where it stopped.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits

from pipelines import config as settings
from pipelines.config import Config, Value, assign
from pipelines.experiments import audit
from pipelines.experiments.scoring_replay import replay, scoring_s, spoken
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser, build
from pipelines.scoring import Prepared
from pipelines.scoring.strategy import never
from profiler.arrays import Array
from profiler.spans import Recorder
from tests.bench import _rounds
from tests.bench._rounds import LANE, Kept, Progress, Side, interleave, key_of, markdown, paired
from tests.bench.corpus import needs_words, speech_for_words

Settings = dict[str, Value]
MODELS = ("ptm", "continuous")
BLOCKS = (1, 16)
EXACT = "exact"
MAX_AUDIO_S = 12.0
"""Speeds are taken on the first files up to this length: some forty configurations take their turns."""
AT_ONCE = 8  # configurations audited together: each may hold prepared lists of some 100 MB
STRATEGIES: dict[str, tuple[str, Settings]] = {
    EXACT: ("", {}),
    "every 2nd frame": ("frame", {"frames.skip": 2}),
    "every 3rd frame": ("frame", {"frames.skip": 3}),
    "conditional, at most 1 of 2 skipped": ("frame", {"frames.skip": 2, "frames.rule": "conditional"}),
    "conditional, at most 2 of 3 skipped": ("frame", {"frames.skip": 3, "frames.rule": "conditional"}),
    "active senones": ("GMM", {"gmm.senones": "active"}),
    "CI selection, beam 23 (1e-10)": ("GMM", {"gmm.senones": "ci", "gmm.ci_beam": 23.0}),
    "CI selection, beam 10": ("GMM", {"gmm.senones": "ci"}),
    "CI selection, at most 1 500 senones": ("GMM", {"gmm.senones": "ci", "gmm.ci_cap": 1500}),
    "top 4": ("Gaussian", {"gmm.selection.method": "top-n"}),
    "last frame's top 4 first": ("Gaussian", {"gmm.selection.method": "last-top-n"}),
    "VQ shortlist, flat": ("Gaussian", {"gmm.selection.method": "vq"}),
    "VQ shortlist, tree": ("Gaussian", {"gmm.selection.method": "vq-tree"}),
    "VQ table of scores": ("Gaussian", {"gmm.selection.method": "vq-table"}),
    "clusters": ("Gaussian", {"gmm.selection.method": "clusters"}),
    "max approximation": ("component", {"gmm.component": "max"}),
    "8 bit": ("component", {"gmm.component": "int8"}),
    "partial distance": ("component", {"gmm.component": "partial-distance"}),
}  # fmt: skip
"""By title: the layer and the settings that differ from exact scoring."""
EVERY_SECOND: Settings = {"frames.skip": 2}
CI: Settings = {"gmm.senones": "ci"}
ACTIVE: Settings = {"gmm.senones": "active"}
VQ: Settings = {"gmm.selection.method": "vq"}
TOP_4: Settings = {"gmm.selection.method": "top-n"}
COMBINED: dict[str, Settings] = {
    "conditional 2 + CI + VQ": EVERY_SECOND | {"frames.rule": "conditional"} | CI | VQ,
    "VQ + 8 bit": VQ | {"gmm.component": "int8"},
    "CI + VQ": CI | VQ,
    "active + VQ": ACTIVE | VQ,
    "active and CI + VQ + 8 bit": {"gmm.senones": "active-ci"} | VQ | {"gmm.component": "int8"},
    "VQ + max approximation": VQ | {"gmm.component": "max"},
    "top 4 + partial distance": TOP_4 | {"gmm.component": "partial-distance"},
    "active + top 4": ACTIVE | TOP_4,
    "every 2nd frame + top 4": EVERY_SECOND | TOP_4,
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

    def __init__(self, items: Sequence[Item], progress: Progress) -> None:
        self._items, self._progress = list(items), progress
        self._kept = Kept("strategies", [*_rounds.speech_key(self._items), *_rounds.sources("experiments/audit.py")])

    def rows(self, rounds: int) -> list[dict[str, Any]]:
        """Speeds and audits of all strategies."""
        rows = []
        for model in MODELS:
            listed = list(configurations(model))
            configs = [config for _, _, config in listed]
            both = zip(self._speeds(configs, rounds), self._audits(configs), strict=True)
            for (title, layer, _), (speed, audited) in zip(listed, both, strict=True):
                row = {"model": model, "layer": layer, "strategy": title}
                rows.append(row | speed | audited)
        return rows

    def _audits(self, configs: Sequence[Config]) -> list[dict[str, Any]]:
        """The audit of each (`pipelines.experiments.audit`), in groups that share the exact scores."""
        keys = [key_of(config) for config in configs]
        kept = {key: self._kept.get(key) for key in keys}
        missing = [config for config, key in zip(configs, keys, strict=True) if kept[key] is None]
        for at in range(0, len(missing), AT_ONCE):
            some = missing[at : at + AT_ONCE]
            for audited in audit.audits(some, self._items, self._progress, never):
                key = key_of(audited.config)
                kept[key] = _row(audited)
                self._kept.put(key, kept[key])
        return [kept[key] for key in keys]

    def _speeds(self, configs: Sequence[Config], rounds: int) -> list[dict[str, float]]:
        """Time of each over that of the first, the median of paired rounds, at each block size."""
        first = configs[0]
        with threadpool_limits(1):
            self._progress(f"{first.model}: making the recogniser", None)
            recogniser = build(first, Recorder(), LANE, self._progress, never)
            recogniser.register(Recorder())
            speech = [
                recogniser.frontend.features(sound.samples, 0, LANE) for _, sound in spoken(self._items, MAX_AUDIO_S)
            ]
            ready = [recogniser.scorer.make_ready(config, self._progress, never) for config in configs]
            frames = sum(len(features) for features in speech)
            rows: list[dict[str, float]] = [{} for _ in configs]
            for block in BLOCKS:
                sides = [
                    _side(recogniser, settings.replace(config, "block", block), prepared, speech)
                    for config, prepared in zip(configs, ready, strict=True)
                ]
                progress = partial(self._progress, f"{first.model}, block {block}: speed")
                interleave(sides, range(len(speech)), rounds, progress)
                for row, side in zip(rows, sides, strict=True):
                    row[f"us_block_{block}"] = median(side.seconds) / frames * 1e6
                    row[f"time_block_{block}"] = median(paired(side, sides[0]))
        return rows


def _side(recogniser: Recogniser, config: Config, prepared: Prepared, speech: Sequence[Array]) -> Side:
    """Scoring by `config`; its utterances are places in `speech`."""
    recogniser.configure(config, prepared)
    replays = [replay(recogniser, features) for features in speech]

    def take(place: int) -> float:
        recogniser.configure(config, prepared)
        return scoring_s(recogniser.scorer, config.block, replays[place])

    return Side("", take)


def _row(audited: audit.Audit) -> dict[str, Any]:
    interval = audited.wer_change_interval()
    return {
        "shares": audited.shares,
        "score_error": audited.near.mean,
        "same_best": audited.agreement,
        "wer": audited.count.rate,
        "wer_change": audited.wer_change,
        "wer_change_ci95": None if interval is None else list(interval),
        "words": audited.exact_count.reference_words,
    }


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """The table as a bench; `ratio` is what the fastest strategy within 2 points of WER gains at block 1."""
    items = needs_words(speech_for_words(paths, transcripts))
    rows = Table(items, progress).rows(repeat)
    good = [
        row
        for row in rows
        if row["model"] == "continuous" and row["wer_change"] is not None and row["wer_change"] <= 0.02
    ]
    meaning = (
        "time of dense scoring / of the fastest strategy that loses at most 2 points of WER, continuous model, block "
        "1; least and most are those of all such strategies"
    )
    gains = [1 / row["time_block_1"] for row in good] or [float("nan")]
    agreement = {"words": rows[0]["words"], "files": len(items)}
    tree = _rounds.result("exact scoring of the same model", gains, meaning, agreement, rows)
    return tree | {"ratio": max(gains)}


SHARES = ("gaussians", "senones", "components")
COLUMNS = (
    *("layer", "strategy", "Gaussians", "senones", "components", "time, block 1", "time, block 16"),
    *("score error, nat", "same best senone", "WER change, points (95 % interval)"),
)


def tables(rows: Sequence[dict[str, Any]]) -> str:
    """The tables for the documentation."""
    parts = []
    for model in MODELS:
        exact, *others = (row for row in rows if row["model"] == model)
        lines = []
        for row in others:
            low, high = row["wer_change_ci95"] or (float("nan"), float("nan"))
            shares = (row["shares"].get(name) for name in SHARES)
            lines.append(
                [
                    *(row["layer"], row["strategy"], *("–" if one is None else f"{one:.1%}" for one in shares)),
                    *(f"{row['time_block_1']:.2f}", f"{row['time_block_16']:.2f}", f"{row['score_error']:.2g}"),
                    f"{row['same_best']:.0%}",
                    f"{100 * row['wer_change']:+.1f} ({100 * low:+.1f} … {100 * high:+.1f})",
                ]
            )
        parts.append(
            f"## {model}\n\nExact scoring takes {exact['us_block_1']:.0f} µs a frame at block 1 and "
            f"{exact['us_block_16']:.0f} µs at block 16; "
            f"its word error rate is {exact['wer']:.1%} of {exact['words']} words.\n\n{markdown(COLUMNS, lines)}"
        )
    return "\n".join(parts)


HEAD = """# Strategies of GMM scoring

Made by `python -m tests.bench.strategies > docs/strategies.md`. Each strategy is compared with exact scoring by the
same model.

- *Gaussians*, *senones*: share that is evaluated; *components*: share that enters the mixtures
- *time*: time of scoring alone / that of exact scoring, on one thread, median of interleaved rounds; above 1 is a loss
- *score error*: mean difference in nat over the senones within 20 nat of the best
- *WER change*: on the first sentences of the synthetic test corpus, which was never used for tuning; paired bootstrap
  over sentences
"""


def main(arguments: list[str] | None = None) -> int:
    """Print the table as Markdown."""
    parser = _rounds.command_line("strategies", __doc__)
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="rounds of timing")
    given = parser.parse_args(arguments)
    print(HEAD, tables(run([], None, given.repeat, _rounds.progress_lines)["rows"]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
