"""From the files of a look-ahead folder to the graph that is searched, which the cache keeps.

Words are those of `words.txt` in the folder or above it, else of the symbol table in Gr.fst or HCLr.fst. HCLr.fst is
of OpenFst's kind `olabel_lookahead` (add-on.h, label-reachable.h): a header, a magic number, a const FST with a header
of its own, then for the output side whether there is a map of labels, the map, the label that stands for a final state,
and for each state which labels come first on its paths. Gr.fst has those labels, so the map is not used.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numba
import numpy as np

from pipelines.models.kaldi import contexts
from pipelines.models.sphinx import AcousticModel
from pipelines.models.sphinx.binary import read_file
from pipelines.models.sphinx.model import Kaldi
from pipelines.search.graph import openfst
from pipelines.search.graph.cache import digest_of
from pipelines.search.graph.lookahead import ngram
from pipelines.search.graph.lookahead.compose import LookAhead, compose
from pipelines.search.graph.openfst import Fst, Header
from pipelines.search.graph.wfst import VERSION, GraphError, Senones, from_records, save
from profiler.arrays import I32, I64, Bool
from profiler.files import cache
from profiler.files.inputs import open_input, there
from profiler.plain import one_line

HCL, G, DISAMBIGUATION, WORDS = "HCLr.fst", "Gr.fst", "disambig_tid.int", "words.txt"
PLACES = (HCL, f"graph/{HCL}")
COMPOSER_VERSION = 2  # Part of the cache key: raise it when other graphs come out

Progress = Callable[[str, float | None], None]


def file_of(directory: Path) -> Path | None:
    """HCLr.fst in the folder of a model or in its folder graph; None where there is none with a Gr.fst next to it."""
    return next((p for name in PLACES if there(p := directory / name) and there(p.with_name(G))), None)


def words_file(graph: Path) -> Path:
    """`words.txt` next to a graph, or in the folder above it."""
    beside = graph.with_name(WORDS)
    above = graph.parent.with_name(WORDS)
    return above if not there(beside) and there(above) else beside


def cached_as(path: Path, model: AcousticModel, kaldi: Kaldi) -> Path:
    """The file that the graph of HCLr.fst `path` has in the cache, named after the content of all that makes it."""
    made = hashlib.sha256(f"{COMPOSER_VERSION} {VERSION} {model.n_senones}".encode())
    made.update(kaldi.pdfs.tobytes() + kaldi.phones(model.n_senones)[0].tobytes() + model.mdef.senone_state.tobytes())
    for file in (path, path.with_name(G), path.with_name(DISAMBIGUATION), words_file(path)):
        made.update(bytes.fromhex(digest_of(file, "part of a graph")) if there(file) else b"none")
    return cache.path_of(cache.GRAPHS, f"composed-{made.hexdigest()[:24]}")


def make(
    path: Path, model: AcousticModel, kaldi: Kaldi, target: Path, *, silent: Callable[[str], bool], progress: Progress,
    cancelled: Callable[[], bool],
) -> None:  # fmt: skip
    """Compose the graph of HCLr.fst `path` and write it to `target`.

    Words that are `silent` are left out of hypotheses. GraphError or ModelError in one sentence; Cancelled.
    """
    progress(f"reading {HCL} and {G}", None)
    hcl, ahead, own = read_hcl(path)
    model_of_words, names = read_g(path.with_name(G))
    table = words_file(path)
    words = contexts.read_symbols(table) if there(table) else names or own
    if not words:
        raise GraphError(f"{path} and {G} name no words, and there is no {WORDS}.")
    _fit(path, hcl, model_of_words, kaldi, disambiguation(path.with_name(DISAMBIGUATION)), words)
    kept = ~np.fromiter(map(silent, words), bool, len(words))
    model_of_words.olabel = np.where(kept[model_of_words.olabel], model_of_words.olabel, 0).astype(np.int32)
    try:
        composed = compose(
            hcl, ahead, model_of_words, lambda n: progress(f"composing {HCL} and {G}: {n:,} states", None), cancelled
        )
        phones, filler = kaldi.phones(model.n_senones)
        states, arcs, final, start, n_epsilon_states = composed
        notes = f"graph composed of {HCL} and {G}: {len(final):,} states, {len(arcs):,} arcs"
        about = {"graph": str(path), "words": int(np.count_nonzero(kept)), "notes": [notes]}
        senones = Senones(phones, model.mdef.senone_state, filler)
        graph = from_records(start, n_epsilon_states, states, arcs, final, tuple(words[1:]), senones, about)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None
    progress("writing the graph to the cache", None)
    save(graph, target)


def _fit(path: Path, hcl: Fst, g: Fst, kaldi: Kaldi, symbols_of: I32, words: Sequence[str]) -> None:
    """Replace transition-ids by pdfs + 1 and disambiguation symbols by 0; GraphError where the files do not fit."""
    if not (hcl.n_arcs and g.n_arcs):
        raise GraphError(f"{path} or {G} has no arcs.")
    hcl.ilabel = np.where(np.isin(hcl.ilabel, symbols_of), 0, hcl.ilabel).astype(np.int32)
    largest = int(hcl.ilabel.max())
    if largest >= len(kaldi.pdfs):
        raise GraphError(
            f"{path} has transition-id {largest:,}, which {DISAMBIGUATION} does not name, and the model ends at "
            f"{len(kaldi.pdfs) - 1:,}: it was made for another one."
        )
    if int(g.olabel.max()) >= len(words):
        raise GraphError(
            f"{path.with_name(G)} has word {int(g.olabel.max()):,}, and the last one is {len(words) - 1:,}."
        )
    hcl.ilabel = np.where(hcl.ilabel > 0, kaldi.pdfs[hcl.ilabel] + 1, 0).astype(np.int32)


LARGEST = 1 << 30  # Bytes of a file
LARGEST_TEXT = 1 << 20
KIND = "olabel_lookahead"
_MAGIC = struct.pack("<i", 446681434)
_FLAGS = 5
_MAP_ENTRY = 8


@contextmanager
def _in_one_sentence() -> Iterator[None]:
    """Raise GraphError for what is wrong with a file."""
    try:
        yield
    except GraphError:
        raise
    except ValueError as error:
        raise GraphError(one_line(str(error), 400)) from None


def read_hcl(path: Path) -> tuple[Fst, LookAhead, list[str]]:
    """HCLr.fst: the transducer, its look-ahead data, and the names of its output labels, if any."""
    with _in_one_sentence():
        found = _header(path)
        if found.kind != KIND:
            raise GraphError(
                f"{path} is an FST of kind {found.kind}, and not {KIND}, as mkgraph_lookahead.sh makes it."
            )
        return _hcl(found)


def _hcl(head: Header) -> tuple[Fst, LookAhead, list[str]]:
    if head.array("u1", 4, head.body).tobytes() != _MAGIC:
        raise ValueError(f"{head.path} has no FST where look-ahead data are announced")
    inner = openfst.header(head.path, head.body + len(_MAGIC))
    if inner.kind != "const":
        raise ValueError(f"{head.path} wraps an FST of kind {inner.kind}; const is read")
    fst, at = openfst.states_of(inner)
    # Whether there are data at all, of the input side, of the output side; whether they are of inputs; whether a map.
    present, of_inputs, of_outputs, inputs, mapped = head.array("u1", _FLAGS, at).tolist()
    if not (present == of_outputs == 1 and of_inputs == inputs == 0 and mapped in (0, 1)):
        raise ValueError(f"{head.path} has no look-ahead data of output labels")
    at += _FLAGS
    if mapped:
        count = int(head.array("<i8", 1, at)[0])
        if not 0 <= count <= head.size // _MAP_ENTRY:
            raise ValueError(f"{head.path} is cut short in its map of labels")
        at += 8 + count * _MAP_ENTRY
    end_label = int(head.array("<i4", 1, at)[0])
    count = int(head.array("<i8", 1, at + 4)[0])
    if count != fst.n_states or (head.size - at - 12) % 4:
        raise ValueError(f"{head.path} has look-ahead data of {count:,} states, it has {fst.n_states:,}")
    words = np.fromfile(head.path, "<i4", offset=at + 12)
    most = (len(words) - 3 * count) // 2
    if most < 0:
        raise ValueError(f"{head.path} is cut short in its look-ahead data")
    first, begin, end = np.zeros(count + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.int32)
    if intervals(words, ngram.LARGEST_LABEL, first, begin, end) != len(words):
        raise ValueError(f"{head.path} is damaged: the labels ahead of its states are no ascending intervals")
    begin, end = begin[: first[-1]], end[: first[-1]]
    final: Bool = np.zeros(count, np.bool_)
    final[np.searchsorted(first, np.flatnonzero((begin <= end_label) & (end_label < end)), side="right") - 1] = True
    if len(fst.olabel) and int(fst.olabel.min()) < 0:
        raise ValueError(f"{head.path} has a negative output label")
    names = inner.symbols or head.symbols
    return fst, LookAhead(first, begin, end, final), _names(names)


def read_g(path: Path) -> tuple[Fst, list[str]]:
    """Gr.fst, of kind ngram, const or vector: the model, and the names of its labels, if any."""
    with _in_one_sentence():
        found = _header(path)
        if found.kind == "ngram":
            fst = ngram.read(found)
        elif found.kind in ("const", "vector"):
            fst, end = openfst.states_of(found)
            if end != found.size:
                raise ValueError(f"{path} is longer than its {found.n_states:,} states and {found.n_arcs:,} arcs")
        else:
            raise GraphError(f"{path} is an FST of kind {found.kind}; ngram, const and vector are read.")
        for labels in (fst.ilabel, fst.olabel) if fst.n_arcs else ():
            if not 0 <= int(labels.min()) <= int(labels.max()) <= ngram.LARGEST_LABEL:
                raise ValueError(f"{path} has label {int(labels.max()):,}; 0 to {ngram.LARGEST_LABEL:,} are read")
        return fst, _names(found.symbols)


def disambiguation(path: Path) -> I32:
    """The transition-ids of `disambig_tid.int` that stand for disambiguation symbols; none where there is no file."""
    with _in_one_sentence():
        text = read_file(path, LARGEST_TEXT).decode("ascii", "replace").split() if there(path) else []
    if not all(word.isdigit() and len(word) < 10 for word in text):
        raise GraphError(f"{path} has more than whole numbers.")
    return np.array([int(word) for word in text], np.int32)


def _header(path: Path) -> Header:
    open_input(path, "a graph", LARGEST).close()
    return openfst.header(path)


def _names(table: Mapping[int, str] | None) -> list[str]:
    """Names by number, "" where there is none."""
    if table is None:
        return []
    if not table or not 0 <= min(table) <= max(table) <= ngram.LARGEST_LABEL:
        raise ValueError("a symbol table has numbers that are none")
    return [table.get(number, "") for number in range(max(table) + 1)]


@numba.njit(cache=True, nogil=True)
def intervals(words: I32, limit: int, first: I64, begin: I32, end: I32) -> int:  # pragma: no cover - compiled
    """Read the interval sets of all states from the 32-bit `words` of a file; returns the words read, -1 on nonsense.

    Of each state a 64-bit count, begin and end of each interval, and the number of labels in them.
    """
    at, n = 0, 0
    first[0] = 0
    for state in range(len(first) - 1):
        if at + 3 > len(words):
            return -1
        count = words[at]
        if count < 0 or words[at + 1] != 0 or count > (len(words) - at - 3) >> 1 or n + count > len(begin):
            return -1
        at += 2
        last = 0
        for _ in range(count):
            if not last <= words[at] <= words[at + 1] <= limit:
                return -1
            begin[n], end[n] = words[at], words[at + 1]
            last = end[n]
            n += 1
            at += 2
        at += 1
        first[state + 1] = n
    return at
