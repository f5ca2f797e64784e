"""Models, nets, graphs and caches of strangers. Made on purpose is what takes all memory or time, or is forged: with
checksums that are right.
"""

import atexit
import contextlib
import functools
import io
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from unittest import mock

import numpy as np
import soundfile

from app.cli.main import main
from pipelines.config import Graph as GraphConfig
from pipelines.models import sphinx
from pipelines.models.ctc.layouts import Units
from pipelines.models.nets import Layer
from pipelines.search.graph import cache as store
from pipelines.search.graph import compile as graphs
from pipelines.search.graph import openfst
from pipelines.search.graph.ctc import compile as ctc_build
from pipelines.search.graph.recipe import Recipe, recipe_of
from pipelines.search.graph.wfst import ARRAYS, Graph, save
from profiler.files.paths import CACHE_VARIABLE
from tests.bench.campaign import mutate
from tests.bench.campaign.attack import SPEECH, Attack, Commands, Kind
from tests.graph_fst import fst_of
from tests.pipelines import ctc_nets, kaldi_writer, lookahead_files, net_files, nnet3_nets, onnx_files
from tests.pipelines import sphinx_writer as writer

CACHE: Final = "cache"  # folder of an attack that is the program's cache
OWN_CACHE: Final = {CACHE_VARIABLE: CACHE}
SMALL: Final = ("--set", "graph.vocabulary=60", "--set", "graph.bigrams=200", "--no-profile", "--json")

SPHINX: Final = ("feat.params", "mdef", "means", "variances", "transition_matrices", "sendump", "noisedict")


def run(form: str, own_graph: bool = False) -> tuple[str, ...]:
    """A run with the folder `model` as its acoustic model, as it is or derived from, over words of its phones."""
    words = () if own_graph else ("--set", "graph.dictionary=words.dict", "--set", "graph.grammar=words.gram")
    chosen = ("--set", f"model={form}", "--set", "model_directory=model", "--audio", SPEECH)
    return "run", "--preset", "gmm", *chosen, *words, "--no-profile", "--json"


def _sphinx(folder: Path, file: str) -> None:
    made = writer.write_model(folder / "model", codebooks=1 + 3 * (len(file) % 2))
    if file.endswith("mdef"):
        (made / "mdef").write_bytes(writer.text_mdef())
    (made / "noisedict").write_text("<s> SIL\n</s> SIL\n<sil> SIL\n[NOISE] +NSN+\n")
    (folder / "words.dict").write_text("ab AA B\nba B AA\n")
    (folder / "words.gram").write_text("#JSGF V1.0;\ngrammar words;\npublic <words> = (ab | ba)+;\n")


MODELS: Final = Kind(
    files=lambda: [f"model/{name}" for name in SPHINX],
    make=_sphinx,
    commands=lambda file: (run("ptm"), run("continuous")),
)

GMM: Final = ("final.mdl", "tree", "phones.txt", "mfcc.conf", "cmvn_opts", "graph/HCLG.fst", "graph/words.txt")
EXTRACTOR: Final = ("final.ie", "final.dubm", "final.mat", "global_cmvn.stats", "online_cmvn.conf", "splice.conf")
KALDI_NET: Final = ("am/final.mdl", "conf/mfcc.conf", "conf/model.conf", *(f"ivector/{name}" for name in EXTRACTOR))
"""Of a net with i-vectors, as Vosk has it."""
LOOKAHEAD: Final = ("graph/HCLr.fst", "graph/Gr.fst", "graph/disambig_tid.int")
READ: Final = ("mfcc.conf", "cmvn_opts", "final.alimdl", "conf/model.conf", "ivector/online_cmvn.conf")
"""Optional files: without them their defaults hold."""


def gmm(model: Path) -> Path:
    """A small sound folder of mixtures with a graph."""
    return kaldi_writer.put_graph(kaldi_writer.write_model(model), {"ab": (2, 3)}, silence=1)


def net(model: Path) -> Path:
    """A small folder of a net with i-vectors and a graph."""
    nnet3_nets.write_folder(model, ivector_dim=4)
    kaldi_writer.write_ivector(model, d=4)
    return model


def _form(file: str) -> str:
    return "dnn" if file.startswith(("model/am/", "model/conf/", "model/ivector/")) else "continuous"


def _kaldi(folder: Path, file: str) -> None:
    if file.removeprefix("model/") in LOOKAHEAD:
        lookahead_files.put_lookahead(kaldi_writer.write_model(folder / "model"), {"ab": (2, 3)}, 1)
    else:
        (net if _form(file) == "dnn" else gmm)(folder / "model")
    if not (path := folder / file).exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n")


def _kaldi_run(file: str, *more: str) -> Commands:
    return ((*run(_form(file), own_graph=True), *more),)


def _kaldi_sound() -> Iterator[Attack]:
    net = [(KALDI_NET[0], "--set", f"dnn.{setting}") for setting in ("dtype=fp32", "dtype=int8", "senones=active")]
    for name, *more in ((GMM[0],), (LOOKAHEAD[0],), *net):
        file = f"model/{name}"
        yield Attack(f"kaldi: {name}", functools.partial(_kaldi, file=file), _kaldi_run(file, *more))


KALDI: Final = Kind(
    files=lambda: [f"model/{name}" for name in (*GMM, *KALDI_NET, *LOOKAHEAD, *READ)],
    make=_kaldi,
    commands=_kaldi_run,
    sound=_kaldi_sound,
)

CACHED: Final = (
    *("run", "--preset", "gmm-continuous", "--audio", SPEECH, *SMALL, "--set", "gmm.components=8"),
    *("--set", "gmm.selection.enabled=true", "--set", "gmm.selection.method=vq", "--set", "gmm.selection.codewords=32"),
)
"""Uses a graph, a derived model and tables of a selection."""
VERBS: Final = (CACHED, ("doctor", "--json"), ("doctor", "--empty-cache", "--json"))


@functools.cache
def clean() -> Path:
    folder, out = Path(tempfile.mkdtemp(prefix="asrscope-clean-")), io.StringIO()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with (
        mock.patch.dict(os.environ, {CACHE_VARIABLE: str(folder)}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        assert main(list(CACHED)) == 0, out.getvalue()
    return folder


def swapped(path: Path, rng: random.Random) -> None:
    """Another file of the cache in place of one."""
    others = [each for each in path.parents[1].rglob("*.kept") if each != path] or [path]
    path.write_bytes(rng.choice(others).read_bytes())


def _no_caches(rng: random.Random) -> Iterator[Attack]:
    put = {
        "a file": lambda folder: (folder / CACHE).touch(),
        "dangling": lambda folder: (folder / CACHE).symlink_to("nowhere at all"),
        "read-only": lambda folder: (folder / CACHE).mkdir(mode=0o500),
    }
    for name, make in put.items():
        # Without a cache each run compiles its kernels and clusters the model: 17 s on two idle cores.
        yield Attack(f"caches: none, {name}", make, VERBS, may_fail=True, patience=3.0, environment=OWN_CACHE)


CACHES: Final = Kind(
    _no_caches,
    lambda: sorted(f"{CACHE}/{path.relative_to(clean())}" for path in clean().rglob("*.kept") if path.is_file()),
    lambda folder, file: shutil.copytree(clean(), folder / CACHE, symlinks=True),
    lambda file: VERBS,
    (*mutate.DAMAGES, swapped),
    more={"environment": OWN_CACHE, "may_fail": True},
)

GRAMMAR: Final = "digits"
DIGITS: Final = ("run", "--no-profile", "--preset", "gmm", "--set", f"graph.grammar={GRAMMAR}", "--audio", "a.wav")
LARGE: Final = (-1, 0, 1, 2**31 - 1, -(2**31), 2**30, 0x7F800000, 0x7FC00000, 0x7F7FFFFF, -8388609)
"""Indices of nothing, and floats that are infinite, no number, or the largest."""
OF_NETS: Final = ("net/HLG.fst", "net/words.txt", "net/lexicon.txt")  # What a graph of a CTC net is read or made of
NET: Final = (
    *("run", "--set", "model_directory=net", "--audio", SPEECH, "--no-profile", "--json"),
    *("--set", "search.blank_skipping=0.9"),
)
LATTICE: Final = ("--set", "search.lattice=true")
PHRASES: Final = "phrases.txt"


@functools.cache
def _sound_graph() -> tuple[str, Graph]:
    """The graph of a small grammar and where it lies in a cache."""
    acoustic = sphinx.load(sphinx.default_directory())
    with mock.patch.dict(os.environ, OWN_CACHE):
        path = store.path_of(recipe_of(GraphConfig(grammar=GRAMMAR), acoustic))
    return os.path.relpath(path), graphs.load_or_build(GraphConfig(grammar=GRAMMAR), acoustic)


def forged(path: Path, rng: random.Random) -> None:
    """Some numbers of one array of a graph in the cache, as a stranger who knows the format would save them."""
    if path.suffix != ".kept":
        return mutate.mutated(path, rng)
    graph, made = _sound_graph()[1], object.__new__(Graph)
    name = rng.choice([name for name, _ in ARRAYS])
    array = getattr(graph, name).copy()
    words = array.view(np.int32 if array.itemsize % 4 == 0 else np.uint8).reshape(-1)
    for _ in range(rng.choice((1, 1, 4, 100))):
        at = rng.randrange(len(words))
        value = rng.choice((*LARGE, int(words[at]) + rng.choice((-1, 1)), rng.randrange(-(2**31), 2**31)))
        words[at] = np.array(value, np.int64).astype(words.dtype)
    made.__dict__.update(vars(graph) | {name: array})
    save(made, path)
    return None


def _searched(folder: Path, file: str) -> None:
    """The input that holds a file of a graph: in the cache, or in the folder of a CTC net."""
    if file not in OF_NETS:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        save(_sound_graph()[1], folder / file)
        noise = np.random.default_rng(3).normal(scale=0.05, size=8_000).astype(np.float32)
        soundfile.write(folder / "a.wav", noise, 16_000)
        return
    ctc_nets.write(folder / "net", "wenet_ctc")
    (folder / "net/lexicon.txt").write_text("ab ▁a b\nab(2) ▁a c\ndc ▁d c\n", encoding="utf-8")
    (folder / PHRASES).write_text("ab\ndc\n")
    # The graph of two words, which are units.
    units = Units(ctc_nets.SYMBOLS, 0)
    graph = ctc_build.of_units(units, Recipe("", "", units=units.symbols, parts="H", topology="standard"))
    openfst.write(fst_of(graph), folder / "net/HLG.fst")
    (folder / "net/words.txt").write_text("<eps> 0\n" + ctc_nets.tokens(("", *ctc_nets.SYMBOLS))[3:], encoding="utf-8")


def _of_graphs(file: str) -> Commands:
    if file == OF_NETS[-1]:
        return ((*NET, "--set", f"graph.grammar={PHRASES}"),)
    plain = NET if file in OF_NETS else DIGITS
    return (plain, (*plain, *LATTICE))


GRAPHS: Final = Kind(
    files=lambda: [_sound_graph()[0], *OF_NETS],
    make=_searched,
    commands=_of_graphs,
    damages=(forged, forged, forged, *mutate.DAMAGES),
    more={"environment": OWN_CACHE},
    sound=lambda: [Attack("graphs", functools.partial(_searched, file=OF_NETS[0]), _of_graphs(OF_NETS[0])[1:])],
)

SENONES: Final = 5126
MADE: Final = ("made.json", "made.safetensors", "made.onnx")
CTC: Final = tuple(f"{layout}/{name}" for layout in ctc_nets.LAYOUTS for name in ("model.onnx", "tokens.txt"))


def _run_net(file: str) -> Commands:
    if file in CTC:
        chosen = ("--set", f"model_directory={Path(file).parent}", "--set", f"graph.grammar={PHRASES}")
        return (("run", *chosen, "--audio", SPEECH, "--no-profile", "--json"),)
    name = file if file.endswith(".onnx") else "made.safetensors"
    plain = ("--set", "dnn.senones=all") if name.endswith(".onnx") else ()
    return (("run", "--preset", "dnn", "--set", f"dnn.net={name}", "--audio", SPEECH, *plain, *SMALL),)


def _net(folder: Path, file: str) -> None:
    if file in CTC:
        layout = Path(file).parent.name
        ctc_nets.write(folder / layout, layout)
        (folder / PHRASES).write_text("ab\ndc\n")
        return
    made = net_files.net(net_files.card(Layer(8), senones=SENONES))
    (onnx_files.write if file.endswith(".onnx") else net_files.write)(folder, made)


NETS: Final = Kind(files=lambda: (*MADE, *CTC), make=_net, commands=_run_net)
