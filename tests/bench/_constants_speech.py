"""Constants of `tests.bench.constants` about what a search and a selection of densities meet in speech."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import log
from time import perf_counter_ns
from typing import Any

import numpy as np
from msgspec import structs

from pipelines.audio import loading
from pipelines.config import Config, presets
from pipelines.models import opening
from pipelines.models.sphinx import AcousticModel
from pipelines.run.recogniser import Recogniser, build
from pipelines.scoring import kernel_work
from pipelines.scoring.kernel_work import FRAME_PASSED
from pipelines.scoring.meter import Meter
from pipelines.scoring.strategy import never, quietly
from pipelines.scoring.tied.gmm import Gmm
from pipelines.scoring.tied.packing import pack
from pipelines.scoring.tied.roofs_of_some import STAYS
from pipelines.search import adaptive_beam, roofs
from pipelines.search.kernels import layout
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.spans import NullLane, Recorder
from tests.bench import _data
from tests.bench._constants_products import row
from tests.bench._constants_searched import MIB, WHERE, LinesUsed, searched

ROW_BYTES = 256
"""Of a senone, in the output layer of the ladder's nets in 8 bits."""
FILES = ("librivox-0870", "cards-001")
WIDE, NARROW = 13.0, 10.0
TIMES = 5
BEST = 4
"""Densities of a codebook and stream that are kept."""


def speech() -> Iterator[dict[str, Any]]:
    """Shares that roofs of the search and of the best densities are measured at, and how time grows with the beam."""
    paths = [_data.HUMAN / f"{name}.flac" for name in FILES]
    for path in paths:
        if not path.is_file():
            raise BadInput(f"The bench needs human speech, and there is no {path}.")
    config = presets.load("gmm").config
    recorder = Recorder()
    recogniser = build(config, recorder, NullLane(), quietly, never)
    recogniser.register(recorder)
    recogniser.search.warm_up()
    scores, features = [], []
    for path in paths:
        features.append(recogniser.frontend.features(loading.load(path).samples, 0, NullLane()))
        recogniser.scorer.reset()
        whole = [
            recogniser.scorer.score(features[-1][at : at + config.block], at, NullLane()).copy()
            for at in range(0, len(features[-1]), config.block)
        ]
        scores.append(np.concatenate(whole))
    yield from _searched(recogniser, config, scores)
    assert isinstance(recogniser.search, Viterbi)
    yield from searched(recogniser.search, recorder, scores, config.block)
    yield from _beams(recogniser, config, scores)
    yield row(
        "scoring/tied/roofs_of_some.py STAYS",
        "of the four best densities, those that are among the next frame's",
        STAYS,
        _stay(config, features),
        "",
    )


def _searched(
    recogniser: Recogniser, config: Config, scores: list[Array]
) -> Iterator[dict[str, Any]]:
    """What a frame of the search meets, in sums over all frames."""
    model = opening.open_model(config)
    search = recogniser.search
    assert isinstance(search, Viterbi)
    met: Counter[str] = Counter()
    lines = LinesUsed(search)
    for told in scores:
        search.start(0)
        for frame in range(len(told)):
            if frame:
                met += _pruned(search, model)
            search.advance(told[frame : frame + 1], frame)
            met += _frame(search)
            lines.frame()
    frames = sum(map(len, scores))
    where, books = "scoring/tied/lazy.py", len(model.means)
    what = f"codebooks with a senone that is wanted, of {books}"
    yield row(where, what, "", met["codebooks"] / met["pruned"], "")
    where = "search/roofs.py "
    arcs = met["arcs"] - met["sources"]
    for name, what, top, bottom in (
        ("PLACES", "tokens after a frame", met["tokens"], frames),
        ("ARCS_EACH", "listed arcs of two tokens", 2 * arcs, met["sources"]),
        ("ARCS_PER_PASSED", "tokens and arcs for each that passes", met["arcs"], met["passed"]),
        ("PASSING", "of the listed arcs, those that pass", met["passed"], arcs),
        ("FRESH", "of these, those where no token was", met["fresh"], met["passed"]),
        ("LISTED_PASSING", "of listed epsilon arcs, those within", met["within"], met["listed"]),
        ("FRESH_BY_EPSILON", "of all within, those where none was", met["late"], met["ways"]),
        ("NEW_TOKENS", "new tokens per epsilon arc", met["fresh"] + met["late"], met["listed"]),
        ("BY_ARC", "tokens that came over an arc", met["by arc"], met["tokens"]),
        ("BY_ENTRY", "tokens that came over an epsilon arc", met["by entry"], met["tokens"]),
        ("FOLLOWED_EACH", "epsilon arcs of a state followed", met["silent"], met["silent states"]),
        ("FOLLOWED_PASSING", "of new tokens' alone, those within", met["new within"], met["new"]),
        ("FOLLOWED_PASSING", "of all of these", met["silent within"], met["silent"]),
        (
            "FRESH_BY_FOLLOWING",
            "of those, where none was",
            met["silent fresh"],
            met["silent within"],
        ),
        ("OLDER", "lines of new tokens not used in 16 frames", lines.older, lines.all),
        ("OLDEST", "lines of new tokens not used in 200 frames", lines.oldest, lines.all),
        ("RECENT_BYTES", "bytes that 16 frames touch", lines.bytes_of(16), 1),
        ("OLDER_BYTES", "bytes that 200 frames touch", lines.bytes_of(200), 1),
        ("RECORDED", "of their arcs, those of the history", met["recorded"], met["by arc"]),
        ("DEAD", "of the listed tokens, when lists are closed up", met["dead"], met["closed up"]),
        ("KEPT_BY_RANK", "of too many within the beam", met["most"], met["too many"]),
        ("ACTIVE_SENONES", "of all senones, those active", met["wanted"], met["pruned senones"]),
    ):
        yield row(where + name, what, round(getattr(roofs, name), 3), top / bottom, "")
    rows = met["wanted"] / met["pruned"] * ROW_BYTES
    what = f"what a frame touches, and its active rows of {ROW_BYTES} bytes"
    now = (lines.bytes_of(1) + rows) / MIB
    yield row(WHERE + "FRAME_PASSED", what, FRAME_PASSED / MIB, now, "MiB")


def _pruned(search: Viterbi, model: AcousticModel) -> Counter[str]:
    """What the pruning of the frame met that was searched last, and of how many codebooks the next wants senones."""
    space = search._space
    n, m = (int(space.books.decoder_state[i]) for i in (layout.N, layout.M))
    best, costs = space.books.floats[layout.BEST], space.arrays.tokens.new_cost[:m].copy()
    wanted = search.active_senones()
    met = Counter({"pruned": 1, "codebooks": len(np.unique(model.senone_codebook[wanted]))})
    met += Counter({"wanted": len(wanted), "pruned senones": model.n_senones})
    cut = best + space.books.floats[layout.CUTOFF]
    if space.books.work[layout.CLOSED_UP]:
        met += Counter({"closed up": n, "dead": int((costs[:n] >= cut).sum())})
    inside = int((costs < best + space.numbers.beam).sum())
    if inside > space.numbers.max_active:
        met += Counter({"too many": inside, "most": space.numbers.max_active})
    return met


def _frame(search: Viterbi) -> Counter[str]:
    """What one frame met, after it was searched and before its tokens are pruned."""
    space = search._space
    n, m = (int(space.books.decoder_state[i]) for i in (layout.N, layout.M))
    arrays, work = space.arrays, space.books.work
    limit = space.books.floats[layout.LIMIT]
    come = arrays.tokens.come[:m]
    listed = int(space.books.decoder_state[layout.EPSILONS])
    within = int((arrays.epsilons.total[:listed] <= limit).sum())
    new = come[n:]
    silent, states, passing, fresh = _followed(search, True)
    of_new, _, new_passing, _ = _followed(search, False)
    return Counter(
        {
            "sources": int(work[layout.TOKENS]),
            "arcs": int(work[layout.EMIT_ARCS]),
            "passed": int(work[layout.PASSED]),
            "fresh": int((new != layout.BY_ENTRY).sum()),
            "late": int((new == layout.BY_ENTRY).sum()),
            "listed": listed,
            "within": within,
            "ways": within + int(work[layout.FOLLOWED]),
            "tokens": m,
            "by arc": int((come >= 0).sum()),
            "by entry": int((come == layout.BY_ENTRY).sum()),
            "silent": silent,
            "new": of_new,
            "new within": new_passing,
            "silent states": states,
            "silent within": passing,
            "silent fresh": fresh,
            "recorded": int((arrays.emitting.record[come[come >= 0]] >= 0).sum()),
        }
    )


def _followed(search: Viterbi, bettered: bool) -> tuple[int, int, int, int]:
    """Epsilon arcs of new tokens, and of those `bettered` over one: how many arcs, tokens that have any, arcs within,
    and arcs of those to tokens that are new."""
    space, graph = search._space, search.graph
    n, m = (int(space.books.decoder_state[i]) for i in (layout.N, layout.M))
    tokens, limit = space.arrays.tokens, space.books.floats[layout.LIMIT]
    state, cost = tokens.state[:m].astype(np.int64), tokens.new_cost[:m]
    made = np.arange(m) >= n
    if bettered:
        made |= tokens.come[:m] == layout.BY_ENTRY
    made &= (cost <= limit) & (state < graph.n_epsilon_states)
    first = graph.states["epsilon"][state[made]].astype(np.int64)
    count = graph.states["first"][state[made] + 1].astype(np.int64) - first
    arcs = np.repeat(first, count) + np.arange(count.sum())
    arcs -= np.repeat(count.cumsum() - count, count)
    value = np.repeat(cost[made], count) + graph.arcs["weight"][arcs]
    value += np.where(graph.arcs["olabel"][arcs] != 0, space.numbers.penalty, 0.0)
    passing = graph.arcs["target"][arcs[value <= limit]]
    late = tokens.state[n:m][tokens.come[n:m] == layout.BY_ENTRY]
    return int(count.sum()), int((count > 0).sum()), len(passing), int(np.isin(passing, late).sum())


def _beams(recogniser: Recogniser, config: Config, scores: list[Array]) -> Iterator[dict[str, Any]]:
    """How the search's time grows with its beam; the least of TIMES, at each beam in turn."""
    least = dict.fromkeys((WIDE, NARROW), np.inf)
    for _ in range(TIMES):
        for beam in least:
            recogniser.search.configure(structs.replace(config.search, beam=beam))
            start = perf_counter_ns()
            for told in scores:
                recogniser.search.start(0)
                for at in range(0, len(told), config.block):
                    recogniser.search.advance(told[at : at + config.block], at)
            least[beam] = min(least[beam], perf_counter_ns() - start)
    growth = log(least[WIDE] / least[NARROW]) / (WIDE - NARROW)
    where, what = "search/adaptive_beam.py GROWTH", "d ln(time of the search) / d beam, 10 to 13"
    yield row(where, what, adaptive_beam.GROWTH, growth, "")
    each = least[WIDE] / sum(map(len, scores)) / 1e3
    where, what = "scoring/kernel_work.py SEARCH_SECONDS", "the search of a frame, beam 13"
    yield row(where, what, kernel_work.SEARCH_SECONDS * 1e6, each, "µs")


def _stay(config: Config, features: list[Array]) -> float:
    """Part of the best densities of a codebook and stream that are among those of the next frame."""
    family = Gmm(pack(opening.open_model(config)), 1)
    stay = pairs = 0
    for whole in features:
        best = []
        for at in range(0, len(whole), config.block):
            x = family.expand(whole[at : at + config.block])
            g = family.densities(x, 0, family.parameters.n_codebooks, Meter())
            some = g[..., : family.parameters.n_densities]
            best.append(np.argpartition(-some, BEST, axis=-1)[..., :BEST].copy())
        kept = np.concatenate(best)
        again = (kept[1:, ..., :, None] == kept[:-1, ..., None, :]).any(-1)
        stay, pairs = stay + int(again.sum()), pairs + again.size
    return stay / pairs
