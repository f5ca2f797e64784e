"""Gaussian selection: how many Gaussians each strategy computes, in how much of the time, and how right (note 0)."""

from typing import Final

from pipelines.config import Config, Value, assign
from pipelines.labs.chart import Axis, Chart, Line, Mark
from pipelines.labs.declaration import Compared, Gaussians, Lab, Parameters, PublishedValue, Seconds, Singly
from pipelines.labs.desk import Desk
from pipelines.labs.figures import SHARE, Ratio, ci, counted, percent, value
from pipelines.labs.sweep import SweepResult, key
from pipelines.labs.verdicts import FAILS, HOLDS, Finding, all_of, at_most

METHOD: Final = "gmm.selection.method"
Settings = dict[str, Value]

EXACT: Final = "all Gaussians"
FAMILIES: Final[dict[str, dict[str, Settings]]] = {
    "shortlists (VQ)": {
        f"radius {radius}": {METHOD: "vq", "gmm.selection.threshold": radius} for radius in (0.3, 0.5, 0.8, 1.5)
    },
    "shortlists (VQ, tree)": {"radius 0.8": {METHOD: "vq-tree", "gmm.selection.threshold": 0.8}},
    "clusters": {f"{n} expanded": {METHOD: "clusters", "gmm.selection.expand": n} for n in (32, 64)},
}
"""Points of the picture by strategy: what each sets."""

JULIUS: Final = (0.21, 0.52)
"""Of the Gaussians' cost, what the three prunings of Julius leave: 52, 36 and 21 % (129 × 64 mixtures, Kyoto)."""

JUDGED: Final = "shortlists (VQ), radius 0.8"  # The settings that the program comes with


class Params(Parameters, frozen=True, kw_only=True):
    components: Gaussians = 42
    speech_s: Compared = 7.0
    frames: Singly = 8
    seconds: Seconds = 15.0


def points() -> dict[str, Settings]:
    return {f"{family}, {point}": settings for family, every in FAMILIES.items() for point, settings in every.items()}


def measure(params: Params, desk: Desk) -> SweepResult:
    """Scores and words by the audit, times of scoring alone frame by frame.

    By variant: share of Gaussians, of frames with the same best senone, mean |Δ| in nat near it, and word errors.
    """
    from pipelines.experiments.audit import audits
    from pipelines.experiments.scoring_replay import spoken
    from pipelines.labs._scoring import Scoring

    base = assign(Config(), {"model": "continuous", "gmm.components": params.components})
    configs = {name: assign(base, settings) for name, settings in points().items()}
    items = [item for item, _ in spoken(desk.speech(), params.speech_s)]
    with desk.part(0.0, 0.5):
        every = audits(list(configs.values()), items, desk.progress, desk.stopping)
        audited = dict(zip(configs, every, strict=True))
    scoring = Scoring(base, desk, frames=params.frames)
    variants: dict[str, Settings] = {EXACT: {}, **points()}
    frame_by_frame = {name: {"block": 1, **settings} for name, settings in variants.items()}
    with desk.part(0.5, 1.0):
        timings = scoring.sweep(frame_by_frame, "selection in turns").run(desk, params.seconds)
    exact = next(iter(audited.values())).exact_count
    errors = {name: float(audit.count.errors) for name, audit in audited.items()}
    return SweepResult(
        timings=timings,
        counts={"words": exact.reference_words},
        by_variant={
            "gaussians": {EXACT: 1.0} | {n: a.shares["gaussians"] for n, a in audited.items()},
            "same_best": {EXACT: 1.0} | {n: a.agreement or 0.0 for n, a in audited.items()},
            "error": {EXACT: 0.0} | {n: a.near.mean or 0.0 for n, a in audited.items()},
            "word_errors": {EXACT: float(exact.errors)} | errors,
        },
    )


def judge(result: SweepResult) -> Finding:
    timings, facts = result.timings, result.by_variant
    share = facts["gaussians"][JUDGED]
    time = timings.ratio(JUDGED, EXACT)
    wrong, exactly = (round(facts["word_errors"][name]) for name in (JUDGED, EXACT))
    why = (
        f"Shortlists of radius 0.8 compute {percent(share)} of the Gaussians in {ci(time)} of the time; "
        f"{percent(facts['same_best'][JUDGED])} of the frames keep their best senone, and of "
        f"{result.counts['words']:.0f} words {counted(wrong, 'is', 'are')} wrong instead of {exactly}."
    )
    numbers: dict[str, float | None] = {
        "gaussians_share": share,
        "time_share": value(time),
        "same_best": facts["same_best"][JUDGED],
        "gaussians_fewer_times": 1 / share if share else None,
    }
    numbers |= timings.table("{variant}_frame_s", lambda frames, s: s / frames)
    names = {"gaussians": "gaussians_share", "error": "error_nat"}
    for variant in timings.variants:
        numbers[f"{key(variant)}_time_share"] = value(timings.ratio(variant, EXACT))
        numbers |= {f"{key(variant)}_{names.get(fact, fact)}": each[variant] for fact, each in facts.items()}
    verdict = all_of(at_most(Ratio(share, share, share), 1 / 3), at_most(time, 0.5))
    return Finding(verdict, why, numbers)


def picture(result: SweepResult) -> Chart:
    gaussians, same_best = result.by_variant["gaussians"], result.by_variant["same_best"]
    exact = result.timings.time(EXACT)
    times, kept = [], []
    for family, every in FAMILIES.items():
        names = sorted((f"{family}, {point}" for point in every), key=gaussians.__getitem__)
        x = {name: 100 * gaussians[name] for name in names}
        times.append(result.timings.across(family, x, lambda _, s: 100 * s / exact))
        kept.append(Line(family, tuple(x.values()), tuple(100 * same_best[name] for name in x)))
    follows = Line("time follows Gaussians", (0.0, 60.0), (0.0, 60.0), dashed=True)
    julius = Mark("Julius prunes to 21–52 %", 100 * JULIUS[0], on="x", until=100 * JULIUS[1])
    computed = Axis("Gaussians computed", "%", low=0.0)
    right = Chart(computed, Axis("frames with the same best senone", "%", low=0.0, high=100.0), tuple(kept))
    time = Axis("time of scoring", "%", low=0.0)
    return Chart(computed, time, (*times, follows, julius), title="frame by frame", beside=(right,))


LAB: Final = Lab(
    claim="Gaussian selection makes the Gaussians that are computed several times fewer, and scoring faster with them.",
    source="note 0, the answer (Bocchieri 1993)",
    group="scoring",
    measured="The program's own strategies on real speech, frame by frame, compared with all Gaussians of the "
    "same continuous model: share of the Gaussians, share of the time, frames that keep their best senone, word "
    "errors. Selected Gaussians lie in contiguous runs; gathered one by one, a third of them takes longer than "
    "all. The time to make the lists is left out.",
    bound="It holds if less than a third of the Gaussians is computed in less than half of the time. The claim "
    "says several times fewer; published are 10 to 30 % (Gales 1999). Half of the time is ours: a strategy that "
    "skips two thirds and saves less loses most of the gain.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: select, in runs that lie together, and look at time and words, not at the count of Gaussians.",
        FAILS: "So: on this machine reading all Gaussians in order is as good as choosing among them.",
    },
    published=(
        PublishedValue("Gaussians computed by usual selection (Gales 1999: 20 to 30 %)", 0.3, SHARE, "gaussians_share"),
        PublishedValue(
            "Gaussians computed by clusters (Gales 1999, by state: 10 to 15 %)",
            0.15,
            SHARE,
            "clusters_64_expanded_gaussians_share",
        ),
        PublishedValue("speed-up of the likelihoods without loss (Knill 1996)", 5.0, "×", "gaussians_fewer_times"),
    ),
    bytes_needed=lambda params: 6 * 4 * 5126 * params.components * 81,
)
