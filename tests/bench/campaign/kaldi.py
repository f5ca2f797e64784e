"""Kaldi's and Vosk's folders of strangers, on purpose: weights, cycles and amplification in graphs, Gaussians, nets,
options of configuration files, and links that lead nowhere. The mutator damages every file of three sound folders.
"""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from pipelines.search.graph import openfst
from pipelines.search.graph.openfst import Fst, from_arcs
from tests.bench.campaign import mutate
from tests.bench.campaign.attack import Attack, Commands, Kind
from tests.bench.campaign.models import run
from tests.pipelines import kaldi_graphs, kaldi_writer, lookahead_files, nnet3_nets

Arc = tuple[int, int, int, float, int]
Net = Callable[[], nnet3_nets.NetWriter]
Make = Callable[[Path], object]

GMM: Final = ("final.mdl", "tree", "phones.txt", "mfcc.conf", "cmvn_opts", "graph/HCLG.fst", "graph/words.txt")
EXTRACTOR: Final = ("final.ie", "final.dubm", "final.mat", "global_cmvn.stats", "online_cmvn.conf", "splice.conf")
NET: Final = ("am/final.mdl", "conf/mfcc.conf", "conf/model.conf", *(f"ivector/{name}" for name in EXTRACTOR))
"""Of a net with i-vectors, as Vosk has it."""
LOOKAHEAD: Final = ("graph/HCLr.fst", "graph/Gr.fst", "graph/disambig_tid.int")
READ: Final = ("mfcc.conf", "cmvn_opts", "final.alimdl", "conf/model.conf", "ivector/online_cmvn.conf")
"""Optional files: without them their defaults hold, and a link in their place that leads nowhere is refused."""


def gmm(model: Path) -> Path:
    """A small sound folder of mixtures with a graph."""
    return kaldi_graphs.put_graph(kaldi_writer.write_model(model), {"ab": (2, 3)}, silence=1)


def net(model: Path, writer: Net | None = None) -> Path:
    """A small folder of a net with i-vectors and a graph."""
    gmm(model)
    made = writer() if writer else nnet3_nets.tdnnf(input_dim=13, ivector_dim=4)
    (model / "final.mdl").unlink()
    kaldi_writer.write_ivector(model, d=4)
    for folder in ("am", "conf"):
        (model / folder).mkdir()
    (model / "am/final.mdl").write_bytes(made.file(kaldi_writer.PHONES, kaldi_writer.TUPLES))
    (model / "mfcc.conf").rename(model / "conf/mfcc.conf")
    (model / "conf/model.conf").write_text("--beam=10\n--acoustic-scale=1.0\n--frame-subsampling-factor=3\n")
    return model


def _of(file: str) -> str:
    """The form of the model that has a file."""
    return "dnn" if file.startswith(("am/", "conf/", "ivector/")) else "continuous"


def _folder(folder: Path, file: str) -> None:
    name = file.removeprefix("model/")
    if name in LOOKAHEAD:
        lookahead_files.put_lookahead(kaldi_writer.write_model(folder / "model"), {"ab": (2, 3)}, 1)
    else:
        (net if _of(name) == "dnn" else gmm)(folder / "model")
    if not (folder / file).exists():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text("\n")


def _commands(file: str) -> Commands:
    return (run(_of(file.removeprefix("model/")), own_graph=True),)


def fields(path: Path, rng: random.Random) -> None:
    """Integers of a binary file of Kaldi, each behind its size, and floats at any place."""
    data = bytearray(path.read_bytes().ljust(8, b"\0"))
    places = [at for at in range(len(data) - 5) if data[at] == 4 and data[at + 3 : at + 5] in (b"\0\0", b"\xff\xff")]
    for _ in range(rng.choice((1, 2, 200))):
        if places and rng.random() < 0.5:
            struct.pack_into("<i", data, rng.choice(places[:400]) + 1, rng.choice(mutate.NUMBERS) % 2**31)
        else:
            value = rng.choice((np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0.0))
            struct.pack_into("<f", data, rng.randrange(len(data) - 3), value)
    path.write_bytes(data)


# -- graphs --------------------------------------------------------------------------------------


def _fst(states: int, arcs: Sequence[Arc], final: int = -1) -> Fst:
    """Arcs (source, input, output, weight, target) from state 0; `final`: that state alone, or all."""
    finals = np.zeros(states, np.float32) if final < 0 else np.where(np.arange(states) == final, 0, np.inf)
    return from_arcs(states, 0, finals.astype(np.float32), *[np.array(column) for column in zip(*arcs, strict=True)])


def _hclg(made: Callable[[], Fst], folder: Path) -> None:
    openfst.write(made(), gmm(folder / "model") / "graph/HCLG.fst")


def _weights(array: str, value: float, folder: Path) -> None:
    path = gmm(folder / "model") / "graph/HCLG.fst"
    fst = openfst.read(path)
    getattr(fst, array)[:] = value
    openfst.write(fst, path)


def _composed(hcl: Fst, g: Fst, folder: Path) -> None:
    graph = kaldi_writer.write_model(folder / "model") / "graph"
    graph.mkdir()
    (graph / "HCLr.fst").write_bytes(lookahead_files.lookahead(hcl))
    (graph / "Gr.fst").write_bytes(lookahead_files.const(g))
    (graph / "disambig_tid.int").write_text("999\n")
    (graph / "words.txt").write_text("".join(f"w{i} {i}\n" for i in range(10)))


def _product(n: int, m: int, folder: Path) -> None:
    """Graphs of `n` and `m` states that compose to `n` × `m`."""
    silent = [(i, 1 + i % 3, 0, 0.1, (i + 1) % n) for i in range(n)]
    words = [(0, 1, word, 0.1, (7 * word) % n) for word in (1, 2, 3)]
    language = [(s, word, word, 0.5, (s * 3 + word) % m) for s in range(m) for word in (1, 2, 3)]
    _composed(_fst(n, [*silent, *words], final=0), _fst(m, language), folder)


def _cycles() -> Iterator[tuple[str, Callable[[], Fst]]]:
    end: tuple[Arc, ...] = ((1, 1, 1, 0.0, 2), (2, 1, 0, 0.0, 0))
    for word in (0, 1):
        for weight in (0.0, -1.0, -1e-30, 3e38):
            around: list[Arc] = [(0, 0, word, weight, 1), (1, 0, word, weight, 0), *end]
            yield f"a cycle of {weight} with word {word}", functools.partial(_fst, 3, around, 2)
    yield "a loop of -1", functools.partial(_fst, 3, [(0, 0, 0, -1.0, 0), (0, 0, 0, 0.0, 1), *end], 2)
    n = 300
    every: list[Arc] = [(i, 0, 0, 0.001 * ((7 * i + j) % 13), j) for i in range(n) for j in range(n) if i != j]
    every += [(i, 1, 1, 0.0, n) for i in range(n)] + [(n, 1, 0, 0.0, 0)]
    yield "epsilon arcs between all of 300 states", functools.partial(_fst, n + 1, every, n)
    k = 18
    steps = [((2 * i, 2 ** (k - i - 1.0)), 2 * i + 1, 2 * i + 2) for i in range(k)]
    for turn in (1, -1):  # orders that a search by lists may follow exponentially often
        arcs: list[Arc] = []
        for (a, far), between, b in steps:
            arcs += [(a, 0, 0, far, b), (a, 0, 0, 0.0, between), (between, 0, 0, 0.0, b)][::turn]
        arcs += [(2 * k, 1, 1, 0.0, 2 * k + 1), (2 * k + 1, 1, 0, 0.0, 0)]
        yield f"an exponential order, {turn}", functools.partial(_fst, 2 * k + 2, arcs, 2 * k + 1)
    yield (
        "50 000 loops",
        functools.partial(_fst, 2, [*[(0, 1, 0, 0.0, 0)] * 50_000, (0, 1, 1, 0.0, 1), (1, 1, 0, 0.0, 0)]),
    )


# -- Gaussians and nets --------------------------------------------------------------------------


def _gaussians(pdfs: int, most: int, folder: Path) -> None:
    """Mixtures of one Gaussian and one of many, in one dimension: filled up and aligned, each has as many."""
    model = kaldi_writer.write_model(folder / "model")
    states = [*((i, i, [(i, 0.5), (i + 1, 0.5)]) for i in range(60)), (-1, -1, [])]
    phones = dict.fromkeys(range(1, 1 - (-pdfs // 60)), states)
    pairs = [(phone, state, min(60 * (phone - 1) + state, pdfs - 1)) for phone in phones for state in range(60)]
    one, many = ((np.full(n, 1 / n), np.zeros((n, 1)), np.ones((n, 1))) for n in (1, most))
    mixtures = kaldi_writer.mixtures([*[one] * (pdfs - 1), many], constants=False)
    transitions = kaldi_writer.transition_model(phones, [(phone, state, pdf, pdf) for phone, state, pdf in pairs])
    (model / "final.mdl").write_bytes(b"\0B" + transitions + mixtures)
    (model / "final.mat").write_bytes(kaldi_writer.transform(np.full((1, 13 * 7), 0.01)))
    (model / "phones.txt").write_text("<eps> 0\n" + "".join(f"p{phone} {phone}\n" for phone in phones))
    (model / "graph").mkdir()
    openfst.write(_fst(2, [(0, 1, 1, 0.0, 1), (1, 1, 0, 0.0, 0)], 1), model / "graph/HCLG.fst")
    (model / "graph/words.txt").write_text("<eps> 0\na 1\n")


def _chained(layer: Callable[[nnet3_nets.NetWriter, int, object], object], layers: int, scale: float) -> Net:
    """A net of as many equal layers, its weights times `scale`."""

    def made() -> nnet3_nets.NetWriter:
        w = nnet3_nets.NetWriter(np.random.default_rng(1))
        drawn = w.weights
        w.weights = lambda outputs, inputs: drawn(outputs, inputs) * np.float32(scale)
        x: object = ("Append", w.input("input", 13), ("ReplaceIndex", w.input("ivector", 4), 0))
        x = w.affine("first", x, 8)
        for number in range(layers):
            x = layer(w, number, x)
        w.output(w.affine("last", x, 8))
        return w

    return made


def _nets() -> Iterator[tuple[str, Net]]:
    for scale in (9e9, -9e9, float("nan"), float("inf")):
        for layers in (1, 6):
            affine = _chained(lambda w, i, x: w.affine(f"a{i}", x, 16), layers, scale)
            yield f"{layers} layers of weights times {scale}", affine
    yield "sums of sums", _chained(lambda w, i, x: w.nothing(f"n{i}", ("Sum", x, x)), 200, 1.0)
    around = _chained(lambda w, i, x: w.nothing(f"n{i}", ("Sum", ("Offset", x, -1), ("Offset", x, 1))), 200, 1.0)
    yield "frames of frames", around
    yield "a chain of 5 000", _chained(lambda w, i, x: w.nothing(f"n{i}", x), 5_000, 1.0)
    yield "scales", _chained(lambda w, i, x: w.nothing(f"n{i}", ("Scale", 1e6, x)), 15, 1.0)
    yield "60 000 wide", _chained(lambda w, i, x: w.affine(f"d{i}", w.affine(f"u{i}", x, 60_000), 1), 4, 1.0)
    many = _chained(
        lambda w, i, x: w.affine(f"c{i}", ("Append", *(("Offset", x, j - 16) for j in range(31))), 8), 3, 1.0
    )
    yield "many offsets", many


# -- configuration files -------------------------------------------------------------------------

OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "conf/model.conf": (
        *("beam", "max-active", "min-active", "lattice-beam", "acoustic-scale", "frame-subsampling-factor", "config"),
        *("word-symbol-table", "\x1b[31m", "endpoint.silence-phones"),
    ),
    "conf/mfcc.conf": (
        *(
            "delta-order",
            "left-context",
            "right-context",
            "norm-means",
            "norm-vars",
            "delta-window",
            "sample-frequency",
        ),
        *("frame-length", "frame-shift", "num-mel-bins", "num-ceps", "low-freq", "high-freq", "cepstral-lifter"),
        *("preemphasis-coefficient", "energy-floor", "blackman-coeff", "round-to-power-of-two", "snip-edges"),
        *("subtract-mean", "htk-compat", "window-type"),
    ),
    "mfcc.conf": ("delta-order", "left-context", "sample-frequency", "num-ceps", "delta-window", "norm-vars"),
    "cmvn_opts": ("norm-means", "norm-vars", "skip-dims"),
    "ivector/online_cmvn.conf": ("cmn-window", "global-frames", "speaker-frames", "skip-dims", "norm-vars"),
    "ivector/splice.conf": ("left-context", "right-context"),
    "ivector/ivector_extractor.conf": (
        *("ivector-period", "num-gselect", "min-post", "posterior-scale", "max-count", "diag-ubm", "lda-matrix"),
        *("ivector-extractor", "num-cg-iters"),
    ),
}
VALUES: Final = (
    *("1", "3", "-1", "0", "nan", "inf", "1e308", "0.0001", "2147483647", "99999999999999999999", "1_0", "١", "true"),
    *("false", "/dev/zero", "../../../../etc/passwd", "1:2:3", "13 " * 5000, "\x1b]0;x\x07", ""),
)  # fmt: skip


def _option(file: str, text: str, folder: Path) -> None:
    _folder(folder, f"model/{file}")
    path = folder / "model" / file
    path.write_text(path.read_text() + text)


def _link(file: str, folder: Path) -> None:
    _folder(folder, f"model/{file}")
    (folder / "model" / file).unlink()
    (folder / "model" / file).symlink_to("nowhere")


def _on_purpose(rng: random.Random) -> Iterator[Attack]:
    def attack(name: str, make: Make, form: str = "continuous", *more: str, **fields: object) -> Attack:
        return Attack(f"kaldi: {name}", make, ((*run(form, own_graph=True), *more),), **fields)

    # First, for it is soon read: the tests try the first attack of each kind.
    for array in ("weight", "final"):
        for value in (np.nan, np.inf, -np.inf, 3e38, -3e38):
            yield attack(f"{array}s of {value}", functools.partial(_weights, array, value))
    for file in READ:
        read = "It was decoded though a link leads nowhere."
        yield attack(
            f"{file} leads nowhere", functools.partial(_link, file), _of(file), check=lambda outs, read=read: read
        )
    for pdfs, most in ((1_000, 4_000), (8_000, 32_000)):
        yield attack(f"{pdfs} pdfs, one of {most}", functools.partial(_gaussians, pdfs, most))
    for n, m in ((20, 20), (1_500, 1_500), (3_001, 4_001)):
        yield attack(f"a product of {n} × {m} states", functools.partial(_product, n, m))
    back: list[Arc] = [(0, 1, 1, 0.5, 1), (1, 1, 1, 0.5, 0), (1, 0, 0, -1.0, 0), (0, 0, 0, -1.0, 1)]
    words: list[Arc] = [(0, 0, 0, -1.0, 1), (1, 0, 0, -1.0, 0), (1, 1, 1, 0.1, 2), (2, 1, 0, 0.1, 3), (3, 1, 0, 0.1, 0)]
    yield attack("cycles composed", functools.partial(_composed, _fst(4, words), _fst(2, back)))
    for name, made in _cycles():
        yield attack(name, functools.partial(_hclg, made))
    for name, writer in _nets():
        for more in ((), ("--set", "dnn.dtype=int8"), ("--set", "dnn.senones=active")):
            make = functools.partial(lambda folder, writer: net(folder / "model", writer), writer=writer)
            yield attack(f"{name} {more[-1:]}", make, "dnn", *more)
    for _ in range(2_000):
        file = rng.choice(list(OPTIONS))
        lines = [f"--{rng.choice(OPTIONS[file])}={rng.choice(VALUES)}\n" for _ in range(rng.choice((1, 1, 2, 3)))]
        yield attack(f"{file} {lines}"[:200], functools.partial(_option, file, "".join(lines)), _of(file))


def _sound() -> Iterator[Attack]:
    for file in (GMM[0], NET[0], LOOKAHEAD[0]):
        for more in ((), ("--set", "dnn.dtype=int8"), ("--set", "dnn.senones=active"))[: 3 if file == NET[0] else 1]:
            make = functools.partial(_folder, file=f"model/{file}")
            yield Attack(f"kaldi: {file}", make, ((*run(_of(file), own_graph=True), *more),))


KALDI: Final = Kind(
    _on_purpose,
    lambda: [f"model/{name}" for name in (*GMM, *NET, *LOOKAHEAD, *READ)],
    _folder,
    _commands,
    (*mutate.DAMAGES, fields, fields, fields),
    sound=_sound,
)
