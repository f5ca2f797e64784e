"""HCLr.fst and Gr.fst written here and not by OpenFst, of small transducers; and composition without look-ahead."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import kaldifst
import numpy as np

from pipelines.models.kaldi import transitions
from pipelines.models.kaldi.binary import Reader
from pipelines.search.graph.lookahead.compose import LookAhead
from pipelines.search.graph.openfst import Fst, from_arcs, from_kaldifst, to_kaldifst
from profiler.arrays import Array
from tests.pipelines import kaldi_writer

NO_LABEL = -1
Contexts = Mapping[tuple[int, ...], Mapping[int, float]]
"""Of each context, the oldest word first, the weights of n-grams by their last word; () is the root, (0,) the start."""


def _text(text: str) -> bytes:
    return struct.pack("<i", len(text.encode())) + text.encode()


def header(kind: str, version: int, flags: int, start: int, states: int, arcs: int) -> bytes:
    counts = struct.pack("<iiQqqq", version, flags, 0, start, states, arcs)
    return struct.pack("<i", 2125659606) + _text(kind) + _text("standard") + counts


def symbols(names: Sequence[str]) -> bytes:
    table = struct.pack("<i", 2125658996) + _text("words.txt") + struct.pack("<qq", len(names), len(names))
    return table + b"".join(_text(name) + struct.pack("<q", number) for number, name in enumerate(names))


def const(fst: Fst, names: Sequence[str] = ()) -> bytes:
    """An OpenFst file of kind const, with a table of output symbols if `names` are given."""
    content = header("const", 2, 2 * bool(names), fst.start, fst.n_states, fst.n_arcs)
    content += symbols(names) if names else b""
    degrees = np.diff(fst.first)
    for state in range(fst.n_states):
        content += struct.pack("<fIIII", fst.final[state], fst.first[state], degrees[state], 0, 0)
    for columns in zip(fst.ilabel, fst.olabel, fst.weight, fst.target, strict=True):
        content += struct.pack("<iifi", *columns)
    return content


def first_labels(fst: Fst) -> list[set[int]]:
    """Which output labels come first on the paths of each state; NO_LABEL: a final state may come before any."""
    found = [{NO_LABEL} if np.isfinite(fst.final[state]) else set() for state in range(fst.n_states)]
    changed = True
    while changed:
        changed = False
        for source, label, target in zip(fst.source, fst.olabel, fst.target, strict=True):
            more = {int(label)} if label else found[target]
            changed |= not more <= found[source]
            found[source] |= more
    return found


def look_ahead(fst: Fst) -> LookAhead:
    """Its data: runs of labels."""
    first, runs = [0], list[tuple[int, int]]()
    sets = first_labels(fst)
    for labels in sets:
        for label in sorted(labels - {NO_LABEL}):
            if len(runs) > first[-1] and runs[-1][1] == label:
                runs[-1] = runs[-1][0], label + 1
            else:
                runs.append((label, label + 1))
        first.append(len(runs))
    begin, end = np.array(runs, np.int32).reshape(-1, 2).T.copy()
    return LookAhead(np.array(first, np.int64), begin, end, np.array([NO_LABEL in labels for labels in sets]))


def lookahead(fst: Fst, names: Sequence[str] = (), mapped: bool = False) -> bytes:
    """An OpenFst file of kind olabel_lookahead; `mapped`: with its map of labels."""
    content = header("olabel_lookahead", 1, 0, -1, 0, 0) + struct.pack("<i", 446681434) + const(fst, names)
    content += struct.pack("<5B", 1, 0, 1, 0, mapped)
    if mapped:
        content += struct.pack("<qiiii", 2, 1, 1, 2, 2)
    data, last = look_ahead(fst), int(fst.olabel.max(initial=0)) + 1
    content += struct.pack("<iq", last, fst.n_states)
    for state in range(fst.n_states):
        arcs = slice(data.first[state], data.first[state + 1])
        sets = [*zip(data.begin[arcs], data.end[arcs], strict=True), *[(last, last + 1)] * int(data.final[state])]
        content += struct.pack("<q", len(sets)) + b"".join(struct.pack("<ii", *pair) for pair in sets)
        content += struct.pack("<i", sum(end - begin for begin, end in sets))
    return content


def _bits(bits: Iterable[int]) -> Array:
    packed = np.packbits(np.array(list(bits), np.uint8), bitorder="little").tobytes()
    return np.frombuffer(packed + bytes(-len(packed) % 8), "<i8")


def ngram_arrays(
    contexts: Contexts, backoff: Mapping[tuple[int, ...], float], final: Mapping[tuple[int, ...], float]
) -> tuple[Array, ...]:
    """What a file of kind ngram holds: three bit strings, words of contexts and n-grams, three lists of weights."""
    nodes = sorted(contexts, key=lambda context: (len(context), context[::-1]))
    tree, futures, words, weights = [1, 0], [0], list[int](), list[float]()
    for node in nodes:
        tree += [1] * sum(len(other) == len(node) + 1 and other[1:] == node for other in nodes) + [0]
        futures += [1] * len(contexts[node]) + [0]
        words += sorted(contexts[node])
        weights += [contexts[node][word] for word in sorted(contexts[node])]
    labels = [NO_LABEL, *(node[0] for node in nodes[1:]), 0]
    back = [np.inf, *(backoff[node] for node in nodes[1:]), 0]
    ends = [final[node] for node in nodes if node in final]
    return (
        *(_bits(bits) for bits in (tree, futures, [node in final for node in nodes])),
        *(np.array(column, "<i4") for column in (labels, words)),
        *(np.array(column, "<f4") for column in (back, ends, [*weights, 0])),
    )


def ngram(
    contexts: Contexts,
    backoff: Mapping[tuple[int, ...], float],
    final: Mapping[tuple[int, ...], float],
    names: Sequence[str] = (),
) -> bytes:
    """An OpenFst file of kind ngram."""
    arrays = ngram_arrays(contexts, backoff, final)
    content = header("ngram", 4, 2 * bool(names), 1, len(contexts), 0) + (symbols(names) if names else b"")
    content += struct.pack("<QQQ", len(contexts), len(arrays[4]), len(arrays[6]))
    return content + b"".join(array.tobytes() for array in arrays)


def random_contexts(seed: int, words: int = 5, order: int = 3) -> tuple[Contexts, dict, dict]:
    """A random model: contexts, weights of backing off, and of ending."""
    rng = np.random.default_rng(seed)
    contexts: dict[tuple[int, ...], dict[int, float]] = {(): {w: float(rng.exponential()) for w in range(1, words)}}
    level = [(w,) for w in range(words) if w == 0 or rng.random() < 0.7]
    for _ in range(order - 1):
        for context in level:
            some = [w for w in range(1, words) if rng.random() < 0.4]
            contexts[context] = {w: float(rng.exponential()) for w in some}
            if len(context) > 1:
                # A context that words lead to.
                contexts[context[:-1]].setdefault(context[-1], float(rng.exponential()))
        longer = [(w, *context) for context in level for w in range(words) if 0 not in context and rng.random() < 0.3]
        level = [context for context in longer if context[:-1] in contexts]
    backoff = {context: float(rng.normal()) for context in contexts}
    final = {context: float(rng.exponential()) for context in contexts if not context or rng.random() < 0.3}
    return contexts, backoff, final


def fst_of_contexts(contexts: Contexts, backoff: Mapping, final: Mapping) -> Fst:
    """The same model as arcs, from what an n-gram model is: a word leads to the longest context that there is."""
    nodes = sorted(contexts, key=lambda context: (len(context), context[::-1]))
    number = {node: i for i, node in enumerate(nodes)}
    arcs = []
    for node in nodes:
        if node:
            arcs.append((number[node], 0, backoff[node], number[node[1:]]))
        for word in sorted(contexts[node]):
            history = (*node, word)
            while history not in number:
                history = history[1:]
            arcs.append((number[node], word, contexts[node][word], number[history]))
    ends = np.array([final.get(node, np.inf) for node in nodes], np.float32)
    source, label, weight, target = (np.array(column) for column in zip(*arcs, strict=True))
    return from_arcs(len(nodes), 1, ends, source, label, label, weight, target)


def random_hcl(seed: int, n: int = 6, ilabels: int = 4, words: int = 5) -> Fst:
    """Some arcs with words, most without, and self-loops."""
    rng = np.random.default_rng(seed)
    m = 3 * n
    source, target = rng.integers(0, n, m), rng.integers(0, n, m)
    olabel = np.where(rng.random(m) < 0.5, rng.integers(1, words, m), 0)
    loops = np.flatnonzero(rng.random(n) < 0.5)
    final = np.where(rng.random(n) < 0.4, rng.exponential(1.0, n), np.inf).astype(np.float32)
    final[n - 1] = 0.0
    ilabel = np.r_[rng.integers(0, ilabels, m), rng.integers(1, ilabels, len(loops))]
    weight = rng.exponential(1.0, m + len(loops))
    return from_arcs(n, 0, final, np.r_[source, loops], ilabel, np.r_[olabel, 0 * loops], weight, np.r_[target, loops])


def random_g(seed: int, n: int = 4, words: int = 5) -> Fst:
    """Any acceptor: arcs unsorted, some with the same label, epsilons to lower states, output labels of their own."""
    rng = np.random.default_rng(seed)
    m = 4 * n
    source, label = rng.integers(0, n, m), rng.integers(0, words, m)
    target = np.where(label > 0, rng.integers(0, n, m), np.maximum(source - 1, 0))
    kept = (label > 0) | (source > 0)
    final = np.where(rng.random(n) < 0.5, rng.exponential(1.0, n), np.inf).astype(np.float32)
    final[0] = 1.0
    columns = source, label, np.where(label > 0, label + 10 * rng.integers(0, 2, m), 0), rng.normal(1, 1, m), target
    return from_arcs(n, n - 1, final, *(column[kept] for column in columns))


def product(hcl: Fst, g: Fst) -> Fst:
    """Both composed by OpenFst, without look-ahead."""
    left = to_kaldifst(hcl)
    kaldifst.arcsort(left, "olabel")
    return from_kaldifst(kaldifst.compose(left, to_kaldifst(g), connect=False))


def language(fst: Fst, inputs: int = 4, outputs: int = 3) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    """The weight of each pair of strings of at most that many labels: of the best of its paths."""
    start = fst.start, (), ()
    best, waiting = {start: 0.0}, [start]
    while waiting:
        key = waiting.pop()
        state, said, heard = key
        for arc in range(fst.first[state], fst.first[state + 1]):
            i, o = int(fst.ilabel[arc]), int(fst.olabel[arc])
            new = (int(fst.target[arc]), said + (i,) * (i > 0), heard + (o,) * (o > 0))
            cost = best[key] + float(fst.weight[arc])
            if len(new[1]) <= inputs and len(new[2]) <= outputs and cost < best.get(new, np.inf) - 1e-6:
                best[new] = cost
                waiting.append(new)
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    for (state, *pair), cost in best.items():
        if np.isfinite(fst.final[state]):
            found[tuple(pair)] = min(cost + float(fst.final[state]), found.get(tuple(pair), np.inf))
    return found


def put_lookahead(folder: Path, words: Mapping[str, Sequence[int]], seed: int) -> tuple[Fst, Fst, int]:
    """Write the files for the model in `folder` into its folder `graph`, as Vosk has them.

    Returns HCL with a disambiguation symbol, a random model of the words, and the symbol's transition-id.
    """
    model = transitions.read(Reader.of(folder / "final.mdl"))
    hcl, symbol = kaldi_writer.hclg(model, words, 1), model.n_transitions + 1
    hcl.ilabel[np.flatnonzero((hcl.ilabel == 0) & (hcl.olabel == 0))[:1]] = symbol
    contexts = random_contexts(seed, 1 + len(words))
    (folder / "graph").mkdir()
    (folder / "graph/HCLr.fst").write_bytes(lookahead(hcl))
    (folder / "graph/Gr.fst").write_bytes(ngram(*contexts, names=["<eps>", *words]))
    (folder / "graph/disambig_tid.int").write_text(f"{symbol}\n")
    return hcl, fst_of_contexts(*contexts), symbol
