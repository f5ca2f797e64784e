"""Kaldi's and Vosk's folders of strangers: weights, options of configuration files, links that lead nowhere.

The mutator damages every file of three sound folders.
"""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from pipelines.search.graph import openfst
from tests.bench.campaign import mutate
from tests.bench.campaign.attack import Attack, Commands, Kind
from tests.bench.campaign.models import run
from tests.pipelines import kaldi_graphs, kaldi_writer, lookahead_files, nnet3_nets

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


def net(model: Path) -> Path:
    """A small folder of a net with i-vectors and a graph."""
    gmm(model)
    made = nnet3_nets.tdnnf(input_dim=13, ivector_dim=4)
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


def _weights(array: str, value: float, folder: Path) -> None:
    path = gmm(folder / "model") / "graph/HCLG.fst"
    fst = openfst.read(path)
    getattr(fst, array)[:] = value
    openfst.write(fst, path)


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
