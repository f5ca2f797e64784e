"""A Kaldi model trained here, on the bundled voices, hears their words: by its own graph and by a compiled one."""

from __future__ import annotations

from pathlib import Path

import kaldi_writer as writer
import numpy as np
import pytest
from kaldi_graphs import put_graph
from search_graphs import full_dictionary, scores_of

from pipelines.audio import loading
from pipelines.config import Config, assign
from pipelines.frontend.kaldi import KaldiMfcc
from pipelines.frontend.kaldi_parameters import KaldiFeatures
from pipelines.run import playlist
from pipelines.run.playlist import Item
from pipelines.training.align import Aligner
from tests.pipelines.shipped import model as shipped
from tests.pipelines.whole_runs import run

NAMES = ("01-slt-morning.flac", "02-rms-harbor.flac", "03-awb-letter.flac", "04-kal16-numbers.flac")
GAUSSIANS, STEPS = 4, 4
FLOOR = 0.1
FEATURES = KaldiFeatures(use_energy=False, delta_order=2)


def mixture(frames: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A few steps of EM from frames in the order of their energy."""
    count = min(GAUSSIANS, max(len(frames) // 20, 1))
    parts = np.array_split(frames[np.argsort(frames[:, 0])], count)
    weights, means = np.full(count, 1 / count), np.array([part.mean(0) for part in parts])
    variances = np.tile(frames.var(0) + FLOOR, (count, 1))
    for _ in range(STEPS):
        log = np.log(weights) - 0.5 * (np.log(variances) + (frames[:, None] - means) ** 2 / variances).sum(2)
        posterior = np.exp(log - np.logaddexp.reduce(log, axis=1, keepdims=True)) + 1e-6
        mass = posterior.sum(0)
        weights, means = mass / mass.sum(), posterior.T @ frames / mass[:, None]
        variances = np.maximum(posterior.T @ frames**2 / mass[:, None] - means**2, FLOOR)
    return weights, means, variances


@pytest.fixture(scope="module")
def items(bundled_speech: Path) -> tuple[Item, ...]:
    paths = [str(bundled_speech / name) for name in NAMES]
    return playlist.build(paths, str(bundled_speech / "transcripts.tsv")).items


@pytest.fixture(scope="module")
def folder(items: tuple[Item, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Monophones of three states, estimated on the frames that the shipped model aligns with them."""
    base, front = shipped(), KaldiMfcc(FEATURES)
    aligner = Aligner(base.mdef, base.transitions, full_dictionary())
    of: dict[tuple[int, int], list[np.ndarray]] = {}
    for item in items:
        found = aligner.align(scores_of(item.path), (item.reference or "").split())
        features = front.features(loading.load(item.path).samples)
        n = min(len(features), len(found.phones))
        states = base.mdef.senone_state[found.senones[:n]]
        for phone, state in set(zip(found.phones[:n].tolist(), states.tolist(), strict=True)):
            mine = (found.phones[:n] == phone) & (states == state)
            of.setdefault((phone, state), []).append(features[:n][mine].astype(np.float64))
    phones = {1 + phone: writer.BAKIS for phone in sorted({phone for phone, _ in of})}
    tuples, pdfs, roots = [], [], dict[int, bytes]()
    for phone in phones:
        for state in range(3):
            tuples.append((phone, state, len(pdfs), len(pdfs)))
            pdfs.append(mixture(np.concatenate(of[phone - 1, state])))
        roots[phone] = writer.table(-1, [writer.leaf(len(pdfs) - 3 + state) for state in range(3)])
    place = tmp_path_factory.mktemp("trained")
    (place / "final.mdl").write_bytes(b"\0B" + writer.transition_model(phones, tuples) + writer.mixtures(pdfs))
    entries = [roots.get(phone) for phone in range(max(phones) + 1)]
    (place / "tree").write_bytes(writer.tree(writer.table(0, entries)))
    names = "".join(f"{base.mdef.phones[phone - 1]} {phone}\n" for phone in phones)
    (place / "phones.txt").write_text(f"<eps> 0\n{names}")
    (place / "mfcc.conf").write_text(writer.MFCC_CONF)
    return place


def words_of(items: tuple[Item, ...]) -> list[str]:
    return sorted({word for item in items for word in (item.reference or "").split()})


def share_of_errors(folder: Path, items: tuple[Item, ...], **settings: object) -> float:
    chosen = {"model": "continuous", "model_directory": str(folder), "search.insertion_penalty": 2.0}
    config = assign(Config(), {**chosen, **settings})
    path = items[0].path.parent
    done = run(config, [item.path for item in items], transcripts=path / "transcripts.tsv").result.utterances
    return sum(each.errors or 0 for each in done) / sum(each.reference_words for each in done)


@pytest.mark.slow
def test_its_own_graph_hears_the_words(folder: Path, items: tuple[Item, ...], tmp_path: Path) -> None:
    for name in ("final.mdl", "mfcc.conf"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    number = {line.split()[0]: int(line.split()[1]) for line in (folder / "phones.txt").read_text().splitlines()}
    known = full_dictionary()
    words = {word: tuple(number[phone] for phone in known[word][0]) for word in words_of(items)}
    put_graph(tmp_path, words, silence=number["SIL"])
    # The first pronunciation of each word alone.
    assert share_of_errors(tmp_path, items) < 0.3


@pytest.mark.slow
def test_a_compiled_graph_hears_the_words(folder: Path, items: tuple[Item, ...], tmp_path: Path) -> None:
    listed = tmp_path / "words.txt"
    listed.write_text("\n".join(words_of(items)))
    assert share_of_errors(folder, items, **{"graph.grammar": str(listed)}) < 0.2
