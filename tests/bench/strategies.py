"""What each strategy of GMM scoring saves and costs: the table in docs/strategies.md.

    python -m tests.bench.strategies > docs/strategies.md
    asrscope bench strategies --json

For every strategy of the four layers, alone and combined, on the model with tied codebooks and on the continuous one:
work done of the exact work, scoring time relative to exact scoring at block 1 and 16 (interleaved; the senones that a
search needs are replayed from its own decode, so that lazy strategies are timed as they run), score error, agreement of
the best senone and word errors (`pipelines.experiments.audit`).
"""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

from threadpoolctl import threadpool_limits

from pipelines import config as settings
from pipelines.config import Config, Value, assign
from pipelines.experiments import audit
from pipelines.experiments.scoring_replay import replay, scoring_s
from pipelines.run.playlist import Item
from pipelines.scoring import Prepared
from pipelines.scoring.strategy import never
from profiler.errors import BadInput
from profiler.spans import Recorder
from tests.bench import _rounds
from tests.bench._rounds import Kept, Progress, Side, Tree, interleave, paired
from tests.bench.corpus import speech_for_words

Settings = dict[str, Value]
MODELS = ("ptm", "continuous")
BLOCKS = (1, 16)
EXACT = "exact"
MAX_AUDIO_S = 12.0  # Speeds are taken on the first files up to this length: some forty configurations take their turns
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


def audited(configs: Sequence[Config], items: Sequence[Item], progress: Progress) -> list[Tree]:
    """The audit of each (`pipelines.experiments.audit`), in groups that share the exact scores, or as it was kept."""
    kept = Kept("strategies", items, "experiments/audit.py")
    missing = [config for config in configs if kept.get(config) is None]
    for at in range(0, len(missing), AT_ONCE):
        for one in audit.audits(missing[at : at + AT_ONCE], items, progress, never):
            interval = one.wer_change_interval()
            row = {
                "shares": one.shares,
                "score_error": one.near.mean,
                "same_best": one.agreement,
                "wer": one.count.rate,
                "wer_change": one.wer_change,
                "wer_change_ci95": interval and list(interval),
                "words": one.exact_count.reference_words,
            }
            kept.put(one.config, row)
    return [dict(kept.get(config) or {}) for config in configs]


def speeds(configs: Sequence[Config], items: Sequence[Item], rounds: int, progress: Progress) -> list[Tree]:
    """Time of each over that of the first, the median of paired rounds, at each block size."""
    first = configs[0]
    rows: list[Tree] = [{} for _ in configs]
    with threadpool_limits(1):
        progress(f"{first.model}: making the recogniser", None)
        recogniser = _rounds.opened(first, progress)
        recogniser.register(Recorder())
        speech = _rounds.features_of(recogniser.frontend, items, MAX_AUDIO_S)
        ready = [recogniser.scorer.make_ready(config, progress, never) for config in configs]

        def side(config: Config, prepared: Prepared) -> Side:
            """Scoring by `config`; its utterances are places in `speech`."""
            recogniser.configure(config, prepared)
            replays = [replay(recogniser, features) for features in speech]

            def take(place: int) -> float:
                recogniser.configure(config, prepared)
                return scoring_s(recogniser.scorer, config.block, replays[place])

            return Side("", take)

        for block in BLOCKS:
            at_block = [settings.replace(config, "block", block) for config in configs]
            sides = list(map(side, at_block, ready))
            interleave(sides, range(len(speech)), rounds, partial(progress, f"{first.model}, block {block}: speed"))
            for row, one in zip(rows, sides, strict=True):
                row[f"us_block_{block}"] = median(one.seconds) / sum(map(len, speech)) * 1e6
                row[f"time_block_{block}"] = median(paired(one, sides[0]))
    return rows


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> Tree:
    """The table as a bench; `ratio` is what the fastest strategy within 2 points of WER gains at block 1."""
    items = speech_for_words(paths, transcripts)
    if not any(item.reference for item in items):
        raise BadInput("The bench counts word errors; say with --transcripts what was said.")
    rows: list[Tree] = []
    for model in MODELS:
        titles, layers, configs = zip(*configurations(model), strict=True)
        figures = speeds(configs, items, repeat, progress), audited(configs, items, progress)
        rows += [
            {"model": model, "layer": layer, "strategy": title} | a | b
            for title, layer, a, b in zip(titles, layers, *figures, strict=True)
        ]
    changes = [(row["wer_change"], 1 / row["time_block_1"]) for row in rows if row["model"] == "continuous"]
    gains = [gain for change, gain in changes if change is not None and change <= 0.02] or [float("nan")]
    meaning = (
        "time of dense scoring / of the fastest strategy that loses at most 2 points of WER, continuous model, block "
        "1; least and most are those of all such strategies"
    )
    agreement = {"words": rows[0]["words"], "files": len(items)}
    return _rounds.result("exact scoring of the same model", gains, meaning, agreement, rows) | {"ratio": max(gains)}


COLUMNS = (
    *("layer", "strategy", "Gaussians", "senones", "components", "time, block 1", "time, block 16"),
    *("score error, nat", "same best senone", "WER change, points (95 % interval)"),
)


HEAD = """# Strategies of GMM scoring

Made by `python -m tests.bench.strategies > docs/strategies.md`. Each strategy is compared with exact scoring by the
same model.

- *Gaussians*, *senones*: share that is evaluated; *components*: share that enters the mixtures
- *time*: time of scoring alone / that of exact scoring, on one thread, median of interleaved rounds; above 1 is a loss
- *score error*: mean difference in nat over the senones within 20 nat of the best
- *WER change*: on the first sentences of the synthetic test corpus, which was never used for tuning; paired bootstrap
  over sentences
"""


def tables(rows: Sequence[Tree]) -> str:
    parts = [HEAD]
    for model in MODELS:
        exact, *others = (row for row in rows if row["model"] == model)
        lines = []
        for row in others:
            low, high = row["wer_change_ci95"] or (float("nan"), float("nan"))
            shares = [row["shares"].get(name) for name in ("gaussians", "senones", "components")]
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
            f"{exact['us_block_16']:.0f} µs at block 16; its word "
            f"error rate is {exact['wer']:.1%} of {exact['words']} words.\n\n{_rounds.markdown(COLUMNS, lines)}"
        )
    return "\n".join(parts).rstrip("\n")


if __name__ == "__main__":
    sys.exit(_rounds.printing_table("strategies", __doc__, 5, run, tables))
