"""The search over graphs of a CTC net, side by side with Kaldi's FasterDecoder on the same graphs and outputs.

The net is that of hama; our graphs H, HL and HLG are handed to `kaldi_decoder.FasterDecoder` over `DecodableCtc`, as
sherpa-onnx searches them, with the same beam, `max_active` and `min_active` and no word insertion penalty. Words, costs
and frames of the units are compared on 500 utterances and more: the speech itself, with noise, and cut. Times are those
of the speech itself: each utterance is decoded by one and at once by the other, on one thread; what counts is the
processor time of that thread. Then what topologies and blank skipping change, of our search alone.
"""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from statistics import median

import kaldifst
import numpy as np
from msgspec.structs import replace

from pipelines.audio import loading as audio
from pipelines.audio import word_errors as wer
from pipelines.config import Config, Search
from pipelines.config import Graph as GraphConfig
from pipelines.models.ctc.net import Computing
from pipelines.models.ctc.opening import load
from pipelines.run import playlist
from pipelines.search.graph.ctc import compile as graphs
from pipelines.search.graph.openfst import to_kaldifst
from pipelines.search.graph.wfst import Graph
from pipelines.search.viterbi import Viterbi
from profiler.arrays import F32, Array
from tests import graph_fst
from tests.bench import corpus
from tests.bench._rounds import Answering, Progress, Tree, found_words, interleave, paired, result, spread, timed
from tests.bench.search import kaldis
from tests.graph_fst import fst_of

BEAM, MAX_ACTIVE, SCALE = 15.0, 7000, 1.0  # sherpa-onnx has beams of 15 or 20 and at most 3000 active states
UTTERANCES = 520
SNRS_DB = (20, 15, 10, 5)
CUTS = (0.5, 0.7, 0.9)  # shares of an utterance that are kept, from its begin or up to its end
PARTS = ("HLG", "HL", "H")
TOPOLOGIES = ("standard", "compact", "minimal")
SHARES = (1.0, 0.999, 0.99, 0.95, 0.9, 0.7, 0.5)
SAME_COST = 0.02  # nat by which best paths may differ: Kaldi lets costs grow over the utterance, in float32
RATE = 16_000
Scores = Mapping[str, F32]  # outputs of the net by the name of the utterance


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> Tree:
    """Compare on `paths` (default: human speech and the bundled voices), `repeat` rounds per graph."""
    net = Computing(load(""))
    units = net.net.units
    items = playlist.build(paths, transcripts).items
    items = items if paths else [*corpus.human_speech(), *items]
    sounds = {item.name: audio.load(item.path).samples.astype(np.float32) for item in items}
    spent = time.process_time()
    scores = {name: net.scores(samples) for name, samples in sounds.items()}
    spent = time.process_time() - spent
    seconds = sum(map(len, sounds.values())) / RATE
    more = dict(scores)
    for n, (name, samples) in zip(range(len(scores), UTTERANCES), derived(sounds), strict=False):
        progress("outputs of the net", n / UTTERANCES)
        more[f"{name}-{n}"] = net.scores(samples.astype(np.float32))
    config = GraphConfig()
    rows, ratios = [], []
    for parts in PARTS:
        graph = graphs.load_or_build(replace(config, parts=parts), units, progress=progress)
        figures, found = compared(graph, scores, more, repeat, progress)
        ratios.append(found)
        rows.append({"graph": parts, "states": graph.n_states, "arcs": graph.n_arcs, **figures})
        for side in ("rtf", "peer_rtf"):
            rows[-1][side] /= seconds
    for topology in TOPOLOGIES:
        graph = graphs.load_or_build(replace(config, topology=topology), units, progress=progress)
        variants = alone(graph, scores, SHARES if topology == "standard" else (1.0, 0.95))
        interleave(list(variants.values()), list(scores), repeat, lambda part: progress("searching in turns", part))
        for share, side in variants.items():
            kept = sum(searched(s, units.blank, share) for s in scores.values()) / sum(map(len, scores.values()))
            errors = wer.total((item.reference, " ".join(side.answers[item.name])) for item in items)
            rows.append(
                {
                    "topology": topology, "states": graph.n_states, "arcs": graph.n_arcs, "blank_skipping": share,
                    "searched": kept, "errors": errors.errors, "words": errors.reference_words,
                    "rtf": median(side.seconds) / seconds, "time_share": median(paired(side, variants[1.0])),
                }
            )  # fmt: skip
    equal = rows[: len(PARTS)]
    agreement = {
        "same": "graph, outputs of the net, beam, max_active, min_active; one thread; no insertion penalty",
        "utterances": len(more),
        **{key: all(row[key] == len(more) for row in equal) for key in ("same_words", "same_cost", "same_units")},
        "largest_cost_difference": max(row["cost_difference"] for row in equal),
        "net_rtf": spent / seconds,
    }
    meaning = f"peer time / our time over HLG at beam {BEAM:g}, at most {MAX_ACTIVE} tokens, median of paired rounds"
    return result(f"kaldi-decoder {version('kaldi-decoder')} FasterDecoder", ratios[0], meaning, agreement, rows)


def derived(sounds: Mapping[str, F32]) -> Iterator[tuple[str, Array]]:
    """Variants of the utterances without end: with white noise, and cut at begin or end."""
    rng = np.random.default_rng(70)
    for name, samples in itertools.cycle(sounds.items()):
        level = float(np.sqrt(np.mean(samples**2)))
        for snr in SNRS_DB:
            yield name, samples + rng.normal(scale=level * 10 ** (-snr / 20), size=len(samples))
        for share in CUTS:
            n = int(share * len(samples))
            yield name, samples[:n] if rng.random() < 0.5 else samples[-n:]


def search(share: float = 1.0) -> Search:
    limits = {"beam": BEAM, "max_active": MAX_ACTIVE, "acoustic_scale": SCALE, "insertion_penalty": 0.0}
    return replace(Config().search, blank_skipping=share, **limits)


def compared(graph: Graph, scores: Scores, more: Scores, repeat: int, progress: Progress) -> tuple[Tree, list[float]]:
    """Times on `scores` and what is equal on `more`, as a row, and the ratios of times round by round."""
    options = {name: getattr(search(), name) for name in ("beam", "max_active", "min_active")}
    peer, decoder = kaldifst.StdConstFst(to_kaldifst(fst_of(graph))), Viterbi(graph, search())
    decoder.warm_up()
    scaled = {name: matrix * np.float32(SCALE) for name, matrix in more.items()}
    mine = Answering("ours", lambda name: timed(lambda: found_words(decoder, scores[name]), time.thread_time))
    theirs = Answering("Kaldi's", lambda name: timed(lambda: kaldis(peer, scaled[name], options), time.thread_time))
    interleave([mine, theirs], list(scores), repeat, lambda share: progress("decoding in turns", share))
    same = dict.fromkeys(("same_words", "same_cost", "same_units"), 0)
    most = 0.0
    for n, (name, matrix) in enumerate(more.items()):
        progress("comparing paths", n / len(more))
        a, b = graph_fst.ours(decoder, matrix), graph_fst.kaldis(peer, scaled[name], graph.blank, **options)
        if b is None:
            continue
        same["same_words"] += a.words == b.words
        same["same_cost"] += abs(a.cost - b.cost) <= SAME_COST
        same["same_units"] += a.segments == b.segments
        most = max(most, abs(a.cost - b.cost))
    ratios = paired(theirs, mine)
    took = {"rtf": median(mine.seconds), "peer_rtf": median(theirs.seconds)}
    return {**spread(ratios), **took, "utterances": len(more), **same, "cost_difference": most}, ratios


def alone(graph: Graph, scores: Scores, shares: Iterable[float]) -> dict[float, Answering]:
    """Our search with each blank skipping; all have the same arrays, as where it is switched while it runs."""
    decoder = Viterbi(graph, search())
    decoder.warm_up()

    def decode(name: str, settings: Search) -> tuple[list[str], float]:
        decoder.configure(settings)
        return timed(lambda: found_words(decoder, scores[name]), time.thread_time)

    return {share: Answering(f"{share:g}", partial(decode, settings=search(share))) for share in shares}


def searched(scores: F32, blank: int, share: float) -> int:
    """Frames that are searched: of a run of blanks over `share` the first."""
    over = scores[:, blank] > (np.log(share) if share < 1.0 else np.inf)
    return len(scores) - int(np.count_nonzero(over[1:] & over[:-1]))
