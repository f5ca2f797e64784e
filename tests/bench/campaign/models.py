"""CMUSphinx and Kaldi folders of strangers: each file missing, cut, changed, huge, or no file at all."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.bench.campaign import _damage
from tests.bench.campaign._damage import Damage
from tests.bench.campaign.attack import SPEECH, Attack
from tests.pipelines import kaldi_graphs, kaldi_writer, lookahead_files, nnet3_nets
from tests.pipelines import sphinx_writer as writer

KALDI = ("final.mdl", "tree", "phones.txt", "mfcc.conf", "cmvn_opts", "graph/HCLG.fst", "graph/words.txt")
EXTRACTOR = ("final.ie", "final.dubm", "final.mat", "global_cmvn.stats", "online_cmvn.conf", "splice.conf")
NET = ("am/final.mdl", "conf/mfcc.conf", "conf/model.conf", *(f"ivector/{name}" for name in EXTRACTOR))
"""Of a net with i-vectors, as Vosk has it."""
LOOKAHEAD = ("graph/HCLr.fst", "graph/Gr.fst", "graph/disambig_tid.int")
SPHINX = ("feat.params", "mdef", "means", "variances", "transition_matrices", "sendump", "noisedict")
FILES = (*SPHINX, *KALDI, *NET, *LOOKAHEAD)
OPTIONS = (
    "nfilt",
    "nfft",
    "wlen",
    "lifter",
    "frate",
    "lowerf",
    "upperf",
    "alpha",
    "ncep",
    "\x1b[2J",
)


def run(form: str, own_graph: bool) -> tuple[str, ...]:
    """A run with the folder `model` as its acoustic model, as it is or derived from, over words of its phones."""
    words = () if own_graph else ("--set", "graph.dictionary=words.dict", "--set", "graph.grammar=words.gram")
    chosen = ("--set", f"model={form}", "--set", "model_directory=model", "--audio", SPEECH)
    return "run", "--preset", "gmm", *chosen, *words, "--no-profile", "--json"


def huge_within_limits(path: Path, rng: random.Random) -> None:
    os.truncate(path, 30 << 20)


def text(path: Path, rng: random.Random) -> None:
    lines = ("a\n" * 1_000_000, "a " * 1_000_000, "\n" * 3_000_000, "-x 1\n" * 9000, "9" * 60_000)
    head = "0.3\n4 n_base\n5 n_tri\n36 n_state_map\n15 n_tied_state\n12 n_tied_ci_state\n4 n_tied_tmat\n"
    path.write_text(head * rng.randrange(2) + rng.choice(lines))


def option(path: Path, rng: random.Random) -> None:
    """Of the front end; other files have no such line."""
    values = ("1e304", "9" * 4000, "-1", "nan", "inf", "0", "1_0", "１", "1e-300")
    path.write_text(f"-feat 1s_c_d_dd\n-nfft 0\n-{rng.choice(OPTIONS)} {rng.choice(values)}\n")


def values(path: Path, rng: random.Random) -> None:
    """Numbers that are none, or beyond the values of any model."""
    value = rng.choice((np.nan, np.inf, 3e38, -3e38, 1e-45, 0.0))
    path.write_bytes(writer.gaussians(np.full((4, 3, 20, 13), value)))


CHECKED = (_damage.mutate, _damage.flip_header, _damage.one_more_one_less, _damage.zeros)
"""These only a checksum would see, or they are much like others."""
DAMAGES: tuple[Damage, ...] = (
    *(damage for damage in _damage.DAMAGES if damage not in CHECKED),
    *(huge_within_limits, text, option, values),
)


def damaged(place: Path, name: str, damage: Damage, seed: int) -> None:
    """A small sound model of which one file is damaged."""
    rng = random.Random(seed)
    if name in NET:
        model = net(place / "model")
    elif name in LOOKAHEAD:
        model = kaldi_writer.write_model(place / "model")
        lookahead_files.put_lookahead(model, {"ab": (2, 3)}, seed)
    elif name in KALDI:
        model = kaldi_graphs.put_graph(kaldi_writer.write_model(place / "model"), {"ab": (2, 3)}, silence=1)
    else:
        model = writer.write_model(place / "model", codebooks=rng.choice((1, 4)))
        if rng.random() < 0.3:
            (model / "mdef").write_bytes(writer.text_mdef())
        (model / "noisedict").write_text("<s> SIL\n</s> SIL\n<sil> SIL\n[NOISE] +NSN+\n")
    (place / "words.dict").write_text("ab AA B\nba B AA\n")
    (place / "words.gram").write_text("#JSGF V1.0;\ngrammar words;\npublic <words> = (ab | ba)+;\n")
    damage(model / name, rng)


def net(folder: Path) -> Path:
    """A small sound folder of a net with i-vectors and a graph."""
    kaldi_graphs.put_graph(kaldi_writer.write_model(folder), {"ab": (2, 3)}, silence=1)
    (folder / "final.mdl").unlink()
    kaldi_writer.write_ivector(folder, d=4)
    (folder / "am").mkdir()
    made = nnet3_nets.tdnnf(input_dim=13, ivector_dim=4)
    (folder / "am/final.mdl").write_bytes(made.file(kaldi_writer.PHONES, kaldi_writer.TUPLES))
    (folder / "conf").mkdir()
    (folder / "mfcc.conf").rename(folder / "conf/mfcc.conf")
    (folder / "conf/model.conf").write_text("--beam=10\n--acoustic-scale=1.0\n--frame-subsampling-factor=3\n")
    return folder


def attacks(rng: random.Random, count: int) -> Iterator[Attack]:
    """Every damage of every file first, then at random."""
    purpose = [(name, damage) for damage in DAMAGES for name in FILES]
    for number in range(count):
        name, damage = purpose[number] if number < len(purpose) else rng.choice(purpose)
        seed = rng.randrange(1 << 30)
        make = functools.partial(damaged, name=name, damage=damage, seed=seed)
        form = "dnn" if name in NET else rng.choice(("ptm", "continuous"))
        yield Attack(
            f"model, {name}: {damage.__name__} ({seed})", make, (run(form, name in (*KALDI, *NET, *LOOKAHEAD)),)
        )
