"""What a decoding graph, its topology and blank skipping cost a CTC net's search, and what they buy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config import Config, Value, assign
from pipelines.labs.chart import Axis, Bars, Chart, Mark
from pipelines.labs.declaration import Lab, Parameters, PublishedValue, Seconds, Vocabulary, Words, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import Ratio, ci, counted, value
from pipelines.labs.sweep import SweepResult, key, one_size
from pipelines.labs.verdicts import FAILS, HOLDS, Finding, all_of, at_most
from profiler.arrays import Array
from profiler.spans import NullLane

if TYPE_CHECKING:
    from pipelines.models.ctc.layouts import Units
    from pipelines.search.graph.wfst import Graph

GREEDY, LEXICON, GRAPH, SKIPPING = "greedy", "lexicon", "graph", "blank skipping"
"""The best unit of each frame; words in any order; words with the language model; the same without repeated blanks."""
GRAPHS: Final[Mapping[str, Mapping[str, Value]]] = {
    LEXICON: {"graph.parts": "HL"},
    GRAPH: {},
    "compact": {"graph.topology": "compact"},
    "minimal": {"graph.topology": "minimal"},
}
LEFT: Final = 0.6  # Of the time of the search, at most
ROWS: Final = 50  # Outputs of the net in a second


class Params(Parameters, frozen=True, kw_only=True):
    vocabulary: Vocabulary = 5000
    speech_s: Words = 60.0
    share: Annotated[
        float, setting("Blank", "Frames whose blank is more probable are left out where they repeat.", ge=0.5, le=1.0)
    ] = 0.95
    seconds: Seconds = 20.0


def measure(params: Params, desk: Desk) -> SweepResult:
    from pipelines.audio import word_errors as wer
    from pipelines.experiments.scoring_replay import spoken
    from pipelines.models.opening import front_end, open_model
    from pipelines.scoring import build_scorer
    from pipelines.search.graph.ctc import compile as graphs
    from pipelines.search.viterbi import Viterbi

    fixed: dict[str, Value] = {"model": "ctc", "search.acoustic_scale": 1.0, "search.insertion_penalty": 0.0}
    config = assign(Config(), {**fixed, "graph.vocabulary": params.vocabulary})
    model = open_model(config, desk.progress, desk.stopping)
    hear, scorer, ctc = front_end(model), build_scorer(config, model, desk.progress, desk.stopping), model.ctc
    assert ctc is not None, "the model of these settings is a CTC net"
    items, scores = [], list[Array]()
    for item, sound in spoken(desk.speech(), params.speech_s):
        desk.check()
        items.append(item)
        scores.append(np.array(scorer.score(hear.features(sound.samples), 0, NullLane())))
    searches = {}
    for name, settings in GRAPHS.items():
        wanted = assign(config, settings).graph
        graph = graphs.load_or_build(wanted, ctc.units, None, desk.progress, desk.stopping)
        searches[name] = Viterbi(graph, config.search), config.search
    # Over the same arrays: others lie elsewhere in the caches.
    searches[SKIPPING] = searches[GRAPH][0], assign(config, {"search.blank_skipping": params.share}).search
    spelt = pronounced(searches[GRAPH][0].graph)

    def search(name: str, rows: Array) -> list[str]:
        viterbi, settings = searches[name]
        viterbi.configure(settings)
        viterbi.start(0)
        viterbi.advance(rows, 0)
        return [word for word, _, _ in viterbi.finish()]

    works: dict[str, Callable[[], list[list[str]]]]
    works = {GREEDY: lambda: [greedy(rows, ctc.units, spelt) for rows in scores]}
    for name in searches:
        works[name] = lambda name=name: [search(name, rows) for rows in scores]  # type: ignore[misc]
    errors = {}
    for name, call in works.items():
        counts = wer.total((item.reference, " ".join(words)) for item, words in zip(items, call(), strict=True))
        errors[name] = float(counts.errors)
    timings = one_size(works, sum(map(len, scores)), "searches in turns", calls=1).run(desk, params.seconds)
    arcs = {name: float(viterbi.graph.n_arcs) for name, (viterbi, _) in searches.items()}
    return SweepResult(
        timings=timings, counts={"words": counts.reference_words}, by_variant={"errors": errors, "arcs": arcs}
    )


def pronounced(graph: Graph) -> dict[tuple[int, ...], str]:
    """Words by their units; of those that sound alike the more probable one, which has the lower number."""
    spelt: dict[tuple[int, ...], str] = {}
    for number, word in enumerate(graph.words):
        for way in range(graph.pron_first[number], graph.pron_first[number + 1]):
            units = graph.pron_phones[graph.phone_first[way] : graph.phone_first[way + 1]]
            spelt.setdefault(tuple(units.tolist()), word)
    return spelt


def greedy(rows: Array, units: Units, spelt: Mapping[tuple[int, ...], str]) -> list[str]:
    """The words whose units the net puts out between two boundaries exactly; others are shown by their units."""
    best = rows.argmax(axis=1)
    kept = best[np.append(True, best[1:] != best[:-1])]
    words: list[list[int]] = [[]]
    for unit in kept[kept != units.blank].tolist():
        if unit == units.boundary:
            words.append([])
        else:
            words[-1].append(unit)
    return [spelt.get(tuple(word), "".join(units.symbols[unit] for unit in word)) for word in words if word]


def judge(result: SweepResult) -> Finding:
    timings, errors = result.timings, result.by_variant["errors"]
    time = timings.ratio(SKIPPING, GRAPH)
    words = result.counts["words"]
    lost = max(errors[SKIPPING] - errors[GRAPH], 0.0) / max(words, 1.0)
    why = (
        f"Without repeated blanks the search takes {ci(time)} of the time, and of {words:.0f} words "
        f"{counted(round(errors[SKIPPING]), 'is', 'are')} wrong instead of {errors[GRAPH]:.0f}; {errors[GREEDY]:.0f} "
        f"are without a graph, {errors[LEXICON]:.0f} without a language model."
    )
    numbers: dict[str, float | None] = {"time_share": value(time)}
    numbers |= timings.per_unit(lambda rows: rows / ROWS).table("{variant}_rtf")
    for name in timings.variants:
        numbers[f"{key(name)}_word_errors"] = errors[name]
        numbers[f"{key(name)}_arcs"] = result.by_variant["arcs"].get(name)
    return Finding(all_of(at_most(time, LEFT), at_most(Ratio(lost, lost, lost), 0.001)), why, numbers)


def picture(result: SweepResult) -> Chart:
    names = result.timings.variants
    ways = Axis("search", categories=tuple(names))
    whole = result.timings.time(GRAPH)
    times = result.timings.bars("time", result.timings.cells(), lambda _, s: 100 * s / whole)
    words = max(result.counts["words"], 1.0)
    wrong = tuple(100 * result.by_variant["errors"][name] / words for name in names)
    errors = Chart(ways, Axis("word errors", "%", low=0.0), (Bars("word errors", wrong),))
    left = Mark("60 %", 100 * LEFT)
    return Chart(ways, Axis("time, of that of the graph", "%", low=0.0), (times, left), beside=(errors,))


LAB: Final = Lab(
    claim="Most outputs of a CTC net are blanks: without those that repeat, its search takes 40 % less time and hears "
    "the same words.",
    source="CTC nets (Laptev 2022)",
    group="scoring",
    measured="The outputs of the phone net of hama for the same speech, searched in turns: the best unit of each frame "
    "with words looked up by their units, a graph of units and words (HL), one with the language model (HLG) in the "
    "three topologies, and the standard one without repeated blanks. The net's own time is left out.",
    bound="It holds if at most 60 % of the time is left and at most one word in a thousand is lost. Both are ours: "
    "published are shares of frames, and errors that stay the same from 0.7 on.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: turn blank skipping on (search.blank_skipping=0.95); then look at the net, which takes the rest.",
        FAILS: "So: this net puts out few blanks, or is unsure of them; try a smaller topology or beam.",
    },
    published=(PublishedValue("time of beam search left in icefall (trained for it)", 92 / 219, "×", "time_share"),),
    bytes_needed=lambda params: 600_000_000 + int(params.speech_s * ROWS) * 4 * 191,
)
