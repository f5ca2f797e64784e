"""Writes small Kaldi models from the description of the formats, for tests.

Independent of the readers: struct and plain loops only. A topology is a list of states (forward class, self-loop class,
[(to, probability)]); the last one emits nothing.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pipelines.models.kaldi import transitions
from pipelines.models.kaldi.binary import Reader
from pipelines.models.kaldi.transitions import TransitionModel
from pipelines.search.graph import openfst
from pipelines.search.graph.openfst import Fst, from_arcs

State = tuple[int, int, list[tuple[int, float]]]
BAKIS: list[State] = [
    (0, 0, [(0, 0.75), (1, 0.25)]),
    (1, 1, [(1, 0.5), (2, 0.5)]),
    (2, 2, [(2, 0.6), (3, 0.4)]),
    (-1, -1, []),
]
SILENCE: list[State] = [(0, 0, [(0, 0.5), (1, 0.3), (2, 0.2)]), (1, 1, [(1, 0.9), (2, 0.1)]), (-1, -1, [])]
SKIPS: list[State] = [
    (0, 0, [(1, 0.5), (2, 0.2), (3, 0.3)]),
    (1, 1, [(1, 0.7), (2, 0.3)]),
    (2, 2, [(3, 1.0)]),
    (-1, -1, []),
]
"""As the aligner's: only the middle state has a self-loop, and one frame is enough."""
MFCC_CONF = "--use-energy=false   # as in the recipes\n--num-ceps=13\n--dither=0\n"


def token(text: str) -> bytes:
    return text.encode() + b" "


def i32(value: int) -> bytes:
    return b"\4" + struct.pack("<i", value)


def f32(value: float) -> bytes:
    return b"\4" + struct.pack("<f", value)


def integers(values: Sequence[int]) -> bytes:
    return b"\4" + struct.pack(f"<{len(values) + 1}i", len(values), *values)


def vector(values: Sequence[float], kind: str = "F") -> bytes:
    code = {"F": "<f", "D": "<d"}[kind]
    return token(f"{kind}V") + i32(len(values)) + b"".join(struct.pack(code, value) for value in values)


def matrix(rows: np.ndarray, kind: str = "F") -> bytes:
    code = {"F": "<f4", "D": "<f8"}[kind]
    return token(f"{kind}M") + b"".join(map(i32, rows.shape)) + np.ascontiguousarray(rows, code).tobytes()


def transform(rows: np.ndarray) -> bytes:
    return b"\0B" + matrix(rows)


def packed(rows: np.ndarray) -> bytes:
    """A symmetric matrix by its lower triangle."""
    return token("DP") + i32(len(rows)) + rows[np.tril_indices(len(rows))].astype("<f8").tobytes()


def topology(phones: Mapping[int, list[State]], own_loops: bool) -> bytes:
    distinct: list[list[State]] = []
    place = [-1] * (max(phones) + 1)
    for phone, states in phones.items():
        if states not in distinct:
            distinct.append(states)
        place[phone] = distinct.index(states)
    out = token("<Topology>") + integers(sorted(phones)) + integers(place)
    out += (i32(-1) if own_loops else b"") + i32(len(distinct))
    for states in distinct:
        out += i32(len(states))
        for forward, loop, arcs in states:
            out += i32(forward) + (i32(loop) if own_loops else b"") + i32(len(arcs))
            for target, probability in arcs:
                out += i32(target) + f32(probability)
    return out + token("</Topology>")


def transition_model(
    phones: Mapping[int, list[State]], tuples: Sequence[tuple[int, int, int, int]], own_loops: bool = False
) -> bytes:
    """`tuples`: phone, HMM state, pdf of forward transitions and of the self-loop."""
    kind = "Tuples" if own_loops else "Triples"
    out = token("<TransitionModel>") + topology(phones, own_loops) + token(f"<{kind}>") + i32(len(tuples))
    logs = [0.0]
    for phone, state, forward, loop in tuples:
        out += i32(phone) + i32(state) + i32(forward) + (i32(loop) if own_loops else b"")
        logs += [math.log(probability) for _, probability in phones[phone][state][2]]
    out += token(f"</{kind}>") + token("<LogProbs>") + vector(logs) + token("</LogProbs>")
    return out + token("</TransitionModel>")


def mixtures(
    pdfs: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], constants: bool = True, old: bool = False
) -> bytes:
    """`pdfs`: weights [n], means and variances [n, dim] of each."""
    out = token("<DIMENSION>") + i32(pdfs[0][1].shape[1]) + token("<NUMPDFS>") + i32(len(pdfs))
    for weights, means, variances in pdfs:
        out += token("<DiagGMMBegin>" if old else "<DiagGMM>")
        if constants:
            terms = np.log(2 * np.pi * variances) + means**2 / variances
            out += token("<GCONSTS>") + vector(np.log(weights) - 0.5 * terms.sum(1))
        out += token("<WEIGHTS>") + vector(weights)
        out += token("<MEANS_INVVARS>") + matrix(means / variances) + token("<INV_VARS>") + matrix(1 / variances)
        out += token("<DiagGMMEnd>" if old else "</DiagGMM>")
    return out


def leaf(pdf: int) -> bytes:
    return token("CE") + i32(pdf)


def split(key: int, values: Sequence[int], yes: bytes, no: bytes) -> bytes:
    return token("SE") + i32(key) + integers(values) + token("{") + yes + no + token("}")


def table(key: int, entries: Sequence[bytes | None]) -> bytes:
    size = b"\xfc" + struct.pack("<I", len(entries))
    inside = b"".join(token("NULL") if entry is None else entry for entry in entries)
    return token("TE") + i32(key) + size + token("(") + inside + token(")")


def tree(root: bytes, width: int = 1, centre: int = 0) -> bytes:
    context = token("ContextDependency") + i32(width) + i32(centre)
    return b"\0B" + context + token("ToPdf") + root + token("EndContextDependency")


def random_pdfs(rng: np.random.Generator, count: int, dimension: int, most: int = 4) -> list:
    return [
        (rng.dirichlet(np.full(n, 2.0)), rng.normal(0, 4, (n, dimension)), rng.uniform(0.5, 6, (n, dimension)))
        for n in rng.integers(1, most + 1, count)
    ]


def extractor(matrices: np.ndarray, inverses: np.ndarray) -> bytes:
    """`matrices` [gaussians, m, d], `inverses` [gaussians, m, m]: the file final.ie."""
    out = b"\0B" + token("<IvectorExtractor>") + token("<w>") + matrix(np.empty((0, 0)), "D")
    out += token("<w_vec>") + vector([1 / len(matrices)] * len(matrices), "D") + token("<M>") + i32(len(matrices))
    out += b"".join(matrix(each, "D") for each in matrices) + token("<SigmaInv>") + b"".join(map(packed, inverses))
    return out + token("<IvectorOffset>") + b"\x08" + struct.pack("<d", 4.0) + token("</IvectorExtractor>")


def write_ivector(model: Path, seed: int = 1, cepstra: int = 13, d: int = 7, gaussians: int = 6) -> Path:
    """The folder `ivector` of a model: LDA from 4 spliced frames to 5 values, statistics as text."""
    folder, rng, m = model / "ivector", np.random.default_rng(seed), 5
    folder.mkdir(parents=True, exist_ok=True)
    matrices, halves = rng.normal(0, 0.5, (gaussians, m, d)), rng.normal(0, 0.5, (gaussians, m, m))
    inverses = halves @ halves.transpose(0, 2, 1) + np.eye(m)
    (folder / "final.ie").write_bytes(extractor(matrices, inverses))
    weights, variances = rng.dirichlet(np.ones(gaussians)), rng.uniform(0.5, 2, (gaussians, m))
    background = mixtures([(weights, rng.normal(0, 1, (gaussians, m)), variances)])
    (folder / "final.dubm").write_bytes(b"\0B" + background[background.index(b"<DiagGMM>") :])
    (folder / "final.mat").write_bytes(transform(rng.normal(0, 0.02, (m, 4 * cepstra + 1))))
    sums = np.array([[*(2e9 * rng.normal(size=cepstra)), 1e9], [*(9e9 * rng.uniform(1, 2, cepstra)), 0]])
    rows = "\n".join("  " + " ".join(f"{value:.9g}" for value in row) for row in sums)
    (folder / "global_cmvn.stats").write_text(f" [\n{rows} ]\n")
    (folder / "online_cmvn.conf").write_text("# the defaults\n")
    (folder / "splice.conf").write_text("--left-context=2\n--right-context=1\n")
    return folder


PHONES: dict[int, list[State]] = {1: SILENCE, 2: BAKIS, 3: BAKIS}
TUPLES = [(1, 0, 0, 0), (1, 1, 1, 1), *((phone, s, *[3 * phone - 4 + s] * 2) for phone in (2, 3) for s in range(3))]
"""Two states of silence and three of each of two phones, eight pdfs."""


def write_mixtures(path: Path, tuples: Sequence = TUPLES, seed: int = 1) -> list:
    """A model with random mixtures for the pdfs of `tuples`, which are returned."""
    pdfs = random_pdfs(np.random.default_rng(seed), len(tuples), 39)
    path.write_bytes(b"\0B" + transition_model(PHONES, tuples) + mixtures(pdfs))
    return pdfs


def write_model(folder: Path, seed: int = 1) -> Path:
    """A monophone model of three phones: final.mdl, tree, phones.txt, mfcc.conf, cmvn_opts."""
    folder.mkdir(parents=True, exist_ok=True)
    write_mixtures(folder / "final.mdl", seed=seed)
    classes = [table(-1, [leaf(0), leaf(1)]), *(table(-1, [leaf(3 * p - 4 + s) for s in range(3)]) for p in (2, 3))]
    (folder / "tree").write_bytes(tree(table(0, [None, *classes])))
    (folder / "phones.txt").write_text("<eps> 0\nsil 1\na 2\nb 3\n#0 4\n")
    (folder / "mfcc.conf").write_text(MFCC_CONF)
    (folder / "cmvn_opts").write_text("--norm-vars=false\n")
    return folder


def side(name: str, key: int) -> str:
    """What of a neighbour's name is known before a graph is compiled: of its place in a word the side of the border."""
    for places in (("_B_I", "_E_S"), (), ("_I_E", "_B_S"))[key]:
        if name[-2:] in (places[:2], places[2:]):
            return name[:-2] + places
    return name


def write_triphones(folder: Path, names: Mapping[int, str], seed: int = 1) -> Path:
    """A triphone model: phone 1 is silence, others are chains and HMMs with skips in turn; questions at random."""
    rng = np.random.default_rng(seed)
    write_model(folder)
    phones = {phone: SILENCE if name.startswith("sil") else (BAKIS, SKIPS)[phone % 2] for phone, name in names.items()}
    tuples: list[tuple[int, int, int, int]] = []

    def pdf(phone: int, state: int) -> bytes:
        tuples.append((phone, state, len(tuples), len(tuples)))
        return leaf(len(tuples) - 1)

    entries: list[bytes | None] = [None] * (max(phones) + 1)
    for phone, states in phones.items():
        classes = []
        for state in range(len(states) - 1):
            if names[phone].startswith("sil"):
                classes.append(pdf(phone, state))
                continue
            key = int(rng.choice([0, 2]))
            groups = sorted({side(name, key) for name in names.values()})
            chosen = set(rng.choice(groups, len(groups) // 2, replace=False).tolist())
            asked = sorted(each for each, name in names.items() if side(name, key) in chosen)
            classes.append(split(key, asked, pdf(phone, state), pdf(phone, state)))
        entries[phone] = table(-1, classes)
    tuples.sort()
    pdfs = random_pdfs(rng, len(tuples), 39, 1)
    (folder / "final.mdl").write_bytes(b"\0B" + transition_model(phones, tuples) + mixtures(pdfs))
    (folder / "tree").write_bytes(tree(table(1, entries), 3, 1))
    lines = (f"{name} {phone}\n" for phone, name in names.items())
    (folder / "phones.txt").write_text("<eps> 0\n" + "".join(lines))
    return folder


def hclg(model: TransitionModel, words: Mapping[str, Sequence[int]], silence: int) -> Fst:
    """`words`: pronunciations as phones; labels are transition-ids and places in `words` from 1 on.

    As Kaldi's without --reorder: HMM states are states, self-loops are arcs. Silence is as probable as none.
    """
    half, entry = math.log(2), math.log(len(words))
    n_states, between, begin = 2, 0, 1
    arcs: list[tuple[int, int, int, float, int]] = [(between, 0, 0, half, begin)]
    ways = [(phones, word, entry, begin, between) for word, phones in enumerate(words.values(), start=1)]
    for phones, word, cost, source, target in [*ways, ((silence,), 0, half, between, begin)]:
        for i, phone in enumerate(phones):
            topology = model.topologies[phone]
            m = len(topology) - 1
            place = [*range(n_states, n_states + m), target if i == len(phones) - 1 else n_states + m]
            arcs.append((source, 0, 0 if i else word, 0.0 if i else cost, place[0]))
            n_states += len(topology)
            for tid in np.flatnonzero(model.phone == phone).tolist():
                state = model.state[tid]
                first = np.flatnonzero((model.phone == phone) & (model.state == state))[0]
                goal = topology[state].transitions[tid - first][0]
                arcs.append((place[state], tid, 0, -float(model.log_prob[tid]), place[goal]))
            source = place[m]
    final = np.full(n_states, np.inf, np.float32)
    final[begin] = 0.0
    return from_arcs(n_states, between, final, *(np.array(column) for column in zip(*arcs, strict=True)))


def put_graph(folder: Path, words: Mapping[str, Sequence[int]], silence: int) -> Path:
    """Write `graph/HCLG.fst` and `graph/words.txt` for the model in `folder`, which is returned."""
    model = transitions.read(Reader.of(folder / "final.mdl"))
    (folder / "graph").mkdir()
    openfst.write(hclg(model, words, silence), folder / "graph/HCLG.fst")
    lines = [f"{word} {number}\n" for number, word in enumerate(["<eps>", *words])]
    (folder / "graph/words.txt").write_text("".join(lines))
    return folder
