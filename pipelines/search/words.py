"""Word hypotheses with times, from the arcs of a best path.

In a determinised graph a word's label lies where the word became certain. Arcs into a first HMM state spell the phones
with their first frames; these are aligned with the words' pronunciations.
"""

from dataclasses import dataclass, field

import numpy as np

from pipelines.search.graph.wfst import Graph
from pipelines.search.kernels import history as history_kernels
from profiler.arrays import Array, ArrayError, check, check_indices

Word = tuple[str, int, int]

SETTLED_WORDS = 8  # Words at the end of a path that are aligned anew each time; what lies before is kept


@dataclass
class _Anchor:
    """A place in the history up to which words are aligned, and what was emitted but not aligned."""

    entry: int = -1
    words: list[Word] = field(default_factory=list)
    emitted: list[int] = field(default_factory=list)


class WordTracer:
    """Turns a place in the history into words; remembers the settled part of an utterance."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._backpointers = np.empty(1024, dtype=np.int32)
        self._anchor = self._before = _Anchor()
        self.backpointers = 0
        """How many entries of the history the last call followed."""
        self.silence = 0
        """Frames of silence (filler phones) at the end of the path of the last call; all of them: no word was said."""

    def reset(self, first: int = 0) -> None:
        """A new utterance begins, or the history was renumbered from entry `first` on."""
        if self._before.entry >= first:
            self._before = _Anchor()
        if self._anchor.entry >= first:
            self._anchor = self._before
        self._before = self._anchor

    def words(self, history: Array, entry: int, end_frame: int) -> list[Word]:
        """Words of the path that ends in `entry` of `history`, with first frame and number of frames.

        `history` int32 [used, 3]: the part of it that is used.
        """
        graph = self._graph
        n, reached = trace(history, entry, self._anchor.entry, self._backpointers)
        if n > len(self._backpointers):
            self._backpointers = np.empty(2 * n, dtype=np.int32)
            n, reached = trace(history, entry, self._anchor.entry, self._backpointers)
        self.backpointers = n
        anchor = self._anchor if reached else _Anchor()
        backpointers = self._backpointers[:n][::-1]
        # The lattice's own entries have no arc.
        backpointers = backpointers[history[backpointers, 1] >= 0]
        arcs = graph.arcs[history[backpointers, 1]]
        frames = history[backpointers, 2]
        label = arcs["ilabel"]
        begins = np.nonzero((label > 0) & (graph.senone_state[np.maximum(label, 1) - 1] == 0))[0]
        ends = np.append(frames[begins[1:]], end_frame)[: len(begins)]
        if graph.blank >= 0:
            # A blank ends a unit, and may stand anywhere.
            spoken = label[begins] - 1 != graph.blank
            begins, ends = begins[spoken], ends[spoken]
        phones = graph.senone_phone[label[begins] - 1].tolist()
        starts, ends = [*frames[begins].tolist(), end_frame], ends.tolist()
        spoken_phones = len(phones)
        while spoken_phones and graph.filler[phones[spoken_phones - 1]]:
            spoken_phones -= 1
        self.silence = end_frame - starts[spoken_phones] if spoken_phones or reached else end_frame
        at_label = np.nonzero(arcs["olabel"])[0]
        emitted = [*anchor.emitted, *(arcs["olabel"][at_label] - 1).tolist()]
        said, spans = [graph.words[word] for word in emitted], align(graph, phones, emitted)
        if spans is None:
            # A model that shares senones between phones: the labels' own frames must do.
            borders = [*frames[at_label].tolist(), end_frame]
            borders = [borders[0]] * len(anchor.emitted) + borders
            found = [(w, max(borders[i], 0), max(borders[i + 1] - borders[i], 1)) for i, w in enumerate(said)]
            return [*anchor.words, *found]
        found = [
            (w, starts[a], max((ends[b - 1] if b > a else 0) - starts[a], 1))
            for w, (a, b) in zip(said, spans, strict=True)
        ]
        settled = len(found) - SETTLED_WORDS
        if settled > SETTLED_WORDS:
            # Just before the first phone of the first word that is not settled.
            at = int(begins[spans[settled][0]]) - 1
            done = len(anchor.emitted) + int(np.searchsorted(at_label, at, side="right"))
            if done >= settled and at >= 0:
                self._anchor = _Anchor(int(backpointers[at]), [*anchor.words, *found[:settled]], emitted[settled:done])
        return [*anchor.words, *found]


def align(graph: Graph, phones: list[int], words: list[int]) -> list[tuple[int, int]] | None:
    """For each word the range of `phones` that it was said with; None when they do not agree.

    Fillers may stand between words. As a path can be cut, the last words may be incomplete and phones may follow.
    """
    filler = graph.filler
    total = len(phones)
    # Ends of the words so far, each with (start, its predecessor's end).
    ends: dict[int, tuple[int, int]] = {0: (0, -1)}
    steps = []
    for word in words:
        reached: dict[int, tuple[int, int]] = {}
        for previous in ends:
            start = previous
            while start < total and filler[phones[start]]:
                start += 1
            for p in range(graph.pron_first[word], graph.pron_first[word + 1]):
                pron = graph.pron_phones[graph.phone_first[p] : graph.phone_first[p + 1]].tolist()
                said = phones[start : start + len(pron)]
                if said == pron[: len(said)]:
                    reached.setdefault(start + len(said), (start, previous))
        if not reached:
            return None
        ends = reached
        steps.append(reached)
    # Where several ends are possible, the one that leaves fewest phones over.
    spans = []
    at = max(ends)
    for reached in reversed(steps):
        start, previous = reached[at]
        spans.append((start, at))
        at = previous
    return spans[::-1]


def collect(
    history: Array, first: int, roots: Array, other_roots: Array, alternative: Array, delta: Array, beam: float
) -> tuple[int, int]:
    """`history_kernels.collect` of arrays that are checked; renumbers the roots and `alternative` in place."""
    used = len(history)
    check("history", history, np.int32, (None, 3), writable=True)
    check("roots", roots, np.int32, (None,), writable=True)
    check("other roots", other_roots, np.int32, (None,), writable=True)
    check("alternatives", alternative, np.int32, (None, 2), writable=True)
    check("their costs", delta, np.float32, (len(alternative),), writable=True)
    if not 0 <= first <= used or (len(alternative) and alternative[0, 0] < first):
        raise ArrayError(f"entries from {first} on are not what is collected of {used}")
    for backpointers in (roots, other_roots, alternative):
        check_indices("backpointers + 1", backpointers + 1, used + 1)
    kept, left = history_kernels.collect(history, first, roots, other_roots, alternative, delta, beam)
    return int(kept), int(left)


def collect_paths(history: Array, roots: Array) -> int:
    """`collect` of a history without alternatives; returns how many entries are left."""
    nobody, none = np.empty(0, np.int32), np.empty((0, 2), np.int32)
    return collect(history, 0, roots, nobody, none, np.empty(0, np.float32), np.inf)[0]


def trace(history: Array, entry: int, anchor: int, out: Array) -> tuple[int, bool]:
    """Entries from `entry` back to (without) `anchor`, last one first, in `out` int32; see `history_kernels.trace`."""
    check("history", history, np.int32, (None, 3))
    check("out", out, np.int32, (None,), writable=True)
    if not -1 <= entry < len(history):
        raise ArrayError(f"there is no entry {entry} among {len(history)}")
    count, met = history_kernels.trace(history, entry, anchor, out)
    return int(count), bool(met)
