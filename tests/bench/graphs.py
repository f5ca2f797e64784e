"""Search graphs: what they cost to build and to load, and what small grammars get wrong.

    asrscope bench graphs
    asrscope bench graphs --audio FOLDER --transcripts FILE.tsv

Every graph is built by the child process that builds it for a run, whose processor time and largest memory
the system reports. The peer is Kaldi's recipe step by step in the same library (composition with context,
determinisation and minimisation after every step) over 1 000 words, in turns with ours. Labelled
recordings whose words a shipped grammar has are decoded with it; a recording with a `.tsv` of the
Free Spoken Digit Dataset's form (start_sample, length, digit) is cut into its digits.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import kaldifst
import numpy as np
import soundfile

import assets
from pipelines.audio import word_errors as wer
from pipelines.config import Config, Graph, assign
from pipelines.models import sphinx
from pipelines.models.sphinx import mdef
from pipelines.models.sphinx.definition import POSITIONS
from pipelines.run import playlist
from pipelines.run.playlist import Item
from pipelines.run.recogniser import build
from pipelines.search.graph import lexicon
from pipelines.search.graph.context import expansion
from pipelines.search.graph.grammar import backoff_label
from pipelines.search.graph.openfst import Fst, from_kaldifst, to_kaldifst
from pipelines.search.graph.recipe import Recipe, recipe_of
from pipelines.search.graph.sources import source
from pipelines.search.graph.wfst import Graph as SearchGraph
from pipelines.search.graph.wfst import load
from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.files import cache
from profiler.files.paths import cache_path
from profiler.process import children
from profiler.spans import Recorder
from tests.bench._data import GIVE, human_speech, needs_words, spoken_digits
from tests.bench._rounds import LANE, Progress, decoded, result, timed
from tests.graph_fst import loopless_of

GRAPHS: dict[str, dict[str, Any]] = {
    "digits": {"grammar": "digits"},
    "cards": {"grammar": "cards"},
    "1k unigram": {"vocabulary": 1000, "order": 1},
    "1k bigram": {"vocabulary": 1000},
    "5k bigram": {},
    "5k trigram": {"order": 3},
    "20k bigram": {"vocabulary": 20_000},
    "20k trigram": {"vocabulary": 20_000, "order": 3},
    "20k trigram, 600k + 600k": {"vocabulary": 20_000, "order": 3, "bigrams": 600_000, "trigrams": 600_000},
    "all words, bigram": {"vocabulary": 1_000_000},
}
PEER = "1k bigram"
SENTENCES = 20
EVERY = 5
"""Of the isolated digits every fifth is decoded: 100 a speaker."""
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def run(paths: list[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """Build all graphs once, the peer's `repeat` times in turns, and decode what there is."""
    items = playlist.build(paths, transcripts).items if paths else human_speech()
    cut = [item.path for item in items] if paths else spoken_digits()
    if not any(map(_is_cut, cut)):
        needs_words(items)
    model = sphinx.load(sphinx.default_directory())
    rows: list[dict[str, Any]] = []
    home = cache_path(cache.GRAPHS)
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".build-bench-") as folder:
        place = Path(folder) / "graph"
        for name, settings in GRAPHS.items():
            progress(f"building {name}", len(rows) / len(GRAPHS))
            rows.append({"graph": name, **built(recipe_of(Graph(**settings), model), place)})
        # What the peer's steps end with: no self-loops, and of the fillers silence alone.
        recipe = recipe_of(Graph(**GRAPHS[PEER]), model)
        recipe = replace(recipe, transition_scale=0.0, filler_probability=0.0)
        ratios = []
        for turn in range(repeat):
            progress("Kaldi's recipe", turn / repeat)
            theirs, peer = kaldi(recipe)
            ratios.append(theirs / built(recipe, place)["cpu_s"])
        apart = disagreement(load(place), peer)
    progress("decoding", None)
    words = list(word_errors(items, cut, progress))
    if not words:
        raise BadInput(f"No grammar that ships can say what was said in these files; {GIVE}.")
    return result(
        f"Kaldi's recipe in kaldifst, {PEER}",
        ratios,
        "processor time of Kaldi's steps / of ours, whole child process",
        {f"largest difference in cost over {SENTENCES} random sentences, nat": apart},
        [*rows, *words],
    )


def built(recipe: Recipe, place: Path) -> dict[str, Any]:
    """Build `recipe` into `place` in a child of its own: time, memory, and the size of the graph."""
    start = time.perf_counter()
    child = subprocess.Popen(
        children.python("-m", "pipelines.search.graph.compile", str(place), json.dumps(recipe.as_dict())),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=children.environment({"TMPDIR": str(place.parent)}),
    )
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.stdin is not None
    child.stdin.close()
    if child.returncode:
        raise RuntimeError(f"the graph compiler ended with code {child.returncode}")
    loads = []
    for _ in range(5):
        graph, seconds = timed(lambda: load(place))
        loads.append(seconds)
    return {
        "wall_s": wall,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_gb": used.ru_maxrss / (1 << 20),
        "load_s": median(loads),
        "file_mb": place.stat().st_size / 1e6,
        "states": graph.n_states,
        "arcs": graph.n_arcs,
    }


def disagreement(ours: SearchGraph, theirs: Fst) -> float:
    """Largest difference between the costs of the same sentences, random words of the vocabulary."""
    plain = loopless_of(ours)
    rng = np.random.default_rng(1)
    spoken = 1 + np.flatnonzero(np.diff(ours.pron_first))
    sentences = [rng.choice(spoken, rng.integers(1, 9)).tolist() for _ in range(SENTENCES)]
    pairs = zip(costs(plain, sentences), costs(theirs, sentences), strict=True)
    return max(abs(mine - other) for mine, other in pairs)


def costs(fst: Fst, sentences: list[list[int]]) -> list[float]:
    """Cost of the best path that says each sentence of word labels."""
    there = to_kaldifst(fst)
    kaldifst.arcsort(there, "olabel")
    result = []
    for words in sentences:
        said = kaldifst.compose(there, kaldifst.make_linear_acceptor(words))
        path = from_kaldifst(kaldifst.StdVectorFst(kaldifst.shortest_path(said)))
        result.append(float(path.weight.sum() + path.final[np.isfinite(path.final)].sum()))
    return result


def kaldi(recipe: Recipe) -> tuple[float, Fst]:
    """Processor time of HCLG without self-loops by Kaldi's steps, and that graph."""
    start = time.process_time()
    definition = mdef.read(Path(recipe.model) / "mdef")
    said = source(recipe, definition)
    labels = {word: i for i, word in enumerate(said.words, start=1) if word in said.dictionary}
    fillers = {definition.phones[definition.silence]: recipe.silence_probability}
    lex, phones = lexicon.transducer(definition, said.dictionary, labels, backoff_label(len(said.words)), fillers)
    left, right = to_kaldifst(lex), to_kaldifst(said.acceptor)
    kaldifst.arcsort(left, "olabel")
    fst = kaldifst.StdVectorFst(kaldifst.compose(left, right))
    _determinised(fst)
    kaldifst.minimize_encoded(fst)
    fst, windows = kaldifst.compose_context(phones.disambiguation, 3, 1, fst)
    tied, sequences = tie(from_kaldifst(fst), windows, definition, phones)
    fst = to_kaldifst(tied)
    _determinised(fst)
    kaldifst.minimize_encoded(fst)
    fst = to_kaldifst(expansion.spell(from_kaldifst(fst), sequences, definition.n_senones + 1))
    _determinised(fst)
    kaldifst.minimize_encoded(fst)
    result = from_kaldifst(fst)
    return time.process_time() - start, result


def _determinised(fst: Any) -> None:
    if kaldifst.determinize_star(fst, use_log=True):
        raise RuntimeError("the graph could not be determinised")


def tie(fst: Fst, windows: list[list[int]], definition: mdef.ModelDefinition, labels: Any) -> tuple[Fst, Array]:
    """Relabel OpenFst's windows of three phones by the senones that they are tied to."""
    phones = np.zeros((len(windows), 3), dtype=np.int64)
    symbol = np.zeros(len(windows), dtype=np.int64)
    for i, window in enumerate(windows):
        if len(window) == 3:
            phones[i] = window
        elif len(window) == 1:
            # [-label] for a disambiguation symbol, [0] for the one that begins every path.
            symbol[i] = 1 + (labels.disambiguation.index(-window[0]) + 1 if window[0] else 0)
    is_phone = phones[:, 1] > 0
    left, centre, right = np.where(phones == 0, definition.silence, (phones - 1) // POSITIONS).T
    tied = np.where(
        definition.filler[centre],
        definition.ci_ssids[centre],
        definition.ssid[centre, left, right, (phones[:, 1] - 1) % POSITIONS],
    )
    rows, number = np.unique(definition.sseq[tied[is_phone]], axis=0, return_inverse=True)
    label = np.zeros(len(windows), dtype=np.int32)
    label[is_phone] = 1 + number.reshape(-1)
    label[symbol > 0] = len(rows) + symbol[symbol > 0]
    ilabel = label[fst.ilabel]
    relabelled = Fst(fst.start, fst.final, fst.first, ilabel, fst.olabel, fst.weight, fst.target)
    return relabelled, rows.astype(np.int32)


def word_errors(items: list[Item], cut: list[Path], progress: Progress) -> Iterator[dict[str, Any]]:
    """Word errors of the shipped grammars on the recordings that they can say, and on those to be `cut`."""
    with tempfile.TemporaryDirectory() as folder:
        spoken = list(isolated(cut, Path(folder)))
        for path in sorted(assets.path("grammars").glob("*.gram")):
            settings = assign(Config(), {"graph.grammar": path.stem})
            recogniser = build(settings, Recorder(), LANE, progress, lambda: False)
            words = set(recogniser.search.graph.words)
            mine = [i for i in items if i.reference and set(wer.words(i.reference)) <= words]
            for name, group in [("recordings", mine), *(spoken if path.stem == "digits" else [])]:
                if group:
                    pairs = ((i.reference, decoded(recogniser, i).hypothesis) for i in group)
                    count = wer.total(pairs)
                    yield {"grammar": path.stem, "audio": name, "words": count.reference_words, "errors": count.errors}


def _is_cut(path: Path) -> bool:
    return path.with_suffix(".tsv").exists()


def isolated(paths: list[Path], folder: Path) -> Iterator[tuple[str, list[Item]]]:
    """Recordings with a table of digits, cut into files of one digit each."""
    for path in paths:
        if not _is_cut(path):
            continue
        table = path.with_suffix(".tsv")
        samples, rate = soundfile.read(path)
        items = []
        with table.open(encoding="utf-8", newline="") as handle:
            for number, row in enumerate(csv.DictReader(handle, delimiter="\t")):
                if number % EVERY == 0:
                    begin = int(row["start_sample"])
                    piece = folder / f"{path.stem}-{number}.wav"
                    soundfile.write(piece, samples[begin : begin + int(row["length"])], rate)
                    items.append(Item(piece.stem, piece, NAMES[int(row["digit"])]))
        yield f"{path.stem}, isolated at {rate // 1000} kHz", items
