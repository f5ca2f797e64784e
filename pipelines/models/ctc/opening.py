"""Opens the folder of a CTC net: that of the package hama, which needs no checks, or one that somebody names.

A stranger's file is read, checked and tried out by a process with bounds (`pipelines.models.foreign`); back comes a
file of the cache's form with the net's bytes and facts.
"""

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from pipelines.models import foreign
from pipelines.models.ctc.layouts import Input, Units, input_of
from pipelines.models.ctc.net import AROUND, MOST_LACKING, WINDOW, Computing, Ctc, part, silence
from pipelines.models.errors import ModelError
from pipelines.models.onnx import graph, runtime
from profiler.files import cache
from profiler.files.inputs import InputError, lines_of, read_bytes, read_json, there
from profiler.plain import one_line
from profiler.process.children import read_arguments

HAMA: Final = "asr_waveform_fp16.onnx"
HAMA_UNITS: Final = "g2p_vocab.json"
MISSING: Final = (
    "model=ctc without model_directory takes the net of the package hama (1.3.13 or a later 1.3), which is not there: "
    "pip install 'asrscope[ctc]'."
)
NETS: Final = ("model.onnx", "model.int8.onnx")
TOKENS: Final = "tokens.txt"
BLANKS: Final = ("<blk>", "<blank>", "<eps>")  # Names of the blank, in the order in which sherpa-onnx looks for them
BOUNDARY: Final = "<wb>"
MOST_UNITS: Final = 65_536
LARGEST_LIST: Final = 4 << 20  # bytes of the list of units
TRIED: Final = (1, 40, 100, 1_000, WINDOW + 2 * AROUND)  # frames of silence that a net is tried on
LONG: Final = 100  # frames from which the number of outputs tells how many each is for
NORMAL: Final = 1e-2  # how far the probabilities of an output, rounded to 16 bits, may be from 1 together


def load(directory: str, cancelled: Callable[[], bool] = lambda: False) -> Ctc:
    """The net in a folder, that of the package hama if none is named; ModelError (one sentence), or Cancelled."""
    if not directory:
        folder = default_folder()
        return Ctc(folder / HAMA, _bytes(folder / HAMA), *_of_hama(folder))
    path = file_of(Path(directory))
    with foreign.opened(__name__, path, [], cancelled) as kept:
        content = kept.arrays["content"].tobytes()
        return Ctc(path, content, *msgspec.convert(kept.about["facts"], tuple[Units, Input, bool]))


def default_folder() -> Path:
    """The folder of the package hama that has its nets; ModelError without one."""
    found = importlib.util.find_spec("hama")
    folder = Path(next(iter((found and found.submodule_search_locations) or ("",)))) / "assets"
    if found is None or not there(folder / HAMA):
        raise ModelError(MISSING)
    return folder


def file_of(folder: Path) -> Path:
    """The net in a folder; ModelError if there is none."""
    found = next((folder / name for name in (HAMA, *NETS) if there(folder / name)), None)
    if found is None:
        raise ModelError(f"{folder} has no {NETS[0]}; the folder of a CTC net has one, with its units in {TOKENS}.")
    return found


def _of_hama(folder: Path) -> tuple[Units, Input]:
    path = folder / HAMA_UNITS
    try:
        names = msgspec.convert(read_json(path, "a list of units", LARGEST_LIST), dict[str, list[str]])["decoder"]
    except (InputError, msgspec.ValidationError, KeyError) as error:
        raise ModelError(f"{path} does not list the units of the net: {one_line(str(error), 200)}") from None
    symbols = (*names, BOUNDARY, BLANKS[1])
    return Units(symbols, len(symbols) - 1, len(symbols) - 2), Input("wave", 2, layout="hama")


def _units(path: Path) -> Units:
    """The units of `tokens.txt`, a symbol and its number in each line; a number alone is that of the space."""
    text = _bytes(path, "a list of units", LARGEST_LIST).decode("utf-8", "replace")
    found: dict[int, str] = {}
    for number, line in enumerate(lines_of(text), start=1):
        symbol, _, at = line.replace("\t", " ").rstrip(" ").rpartition(" ")
        if not at:
            continue
        if not re.fullmatch("[0-9]{1,8}", at) or int(at) >= MOST_UNITS or int(at) in found:
            raise ModelError(f"{path}: line {number:,} is not a unit and a number of its own: {one_line(line, 60)!r}.")
        found[int(at)] = symbol.strip(" ") or " "
    if not found or max(found) >= len(found):
        raise ModelError(f"{path} does not number its {len(found):,} units from 0 without a gap.")
    symbols = tuple(found[number] for number in range(len(found)))
    blank = next((name for name in BLANKS if name in symbols), None)
    if blank is None:
        raise ModelError(f"{path} names no blank ({', '.join(BLANKS)}).")
    boundary = symbols.index(BOUNDARY) if BOUNDARY in symbols else None
    return Units(symbols, symbols.index(blank), boundary)


def _bytes(path: Path, what: str = "an ONNX file", limit: int = graph.LARGEST_FILE) -> bytes:
    try:
        return read_bytes(path, what, limit)
    except InputError as error:
        raise ModelError(str(error)) from error


def _read(path: Path, target: Path) -> None:
    """In the child: read and check the net `path` and write it with its facts to `target`."""
    content = _bytes(path)
    metadata = graph.check(path, content)
    ends = runtime.session(path, content, 1).get_inputs()
    if path.name == HAMA:
        units, takes = _of_hama(path.parent)
    else:
        units, takes = _units(path.parent / TOKENS), input_of(path, metadata, [end.shape for end in ends])
    net = Ctc(path, content, units, takes)
    normal = _try_out(net)
    facts = msgspec.to_builtins((units, takes, not normal))
    cache.write(target, {"content": np.frombuffer(content, np.uint8)}, {"facts": facts})


def _try_out(net: Ctc) -> bool:
    """Whether the outputs are log-probabilities; ModelError unless silence of several lengths gives what it should."""
    computing, normal, takes = Computing(net), True, net.input
    for frames in (takes.chunk,) * 3 if takes.chunk else TRIED:
        scores = computing.scores(part(takes, silence(takes, frames), 0, frames))
        if not np.isfinite(scores).all():
            raise ModelError(f"{net.path} gives scores that are not finite numbers.")
        expected = takes.shift // takes.each if takes.chunk else -(-frames // takes.each)
        lacking = expected - len(scores)
        if lacking if takes.chunk else frames >= LONG and not -1 <= lacking <= MOST_LACKING:
            raise ModelError(
                f"{net.path} gives {len(scores):,} outputs for {frames:,} frames; its metadata say one for "
                f"{takes.each}."
            )
        with np.errstate(over="ignore"):
            normal &= bool((np.abs(np.exp(scores).sum(axis=1, dtype=np.float64) - 1) < NORMAL).all())
    return normal


def main(arguments: Sequence[str] | None = None) -> int:
    """The child: `opening FILE TARGET`; not meant to be called by people."""
    path, target = read_arguments("pipelines.models.ctc.opening", __doc__, "FILE", "TARGET", arguments=arguments)
    return foreign.answer(Path(path), lambda: _read(Path(path), Path(target)))


if __name__ == "__main__":
    sys.exit(main())
