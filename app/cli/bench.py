"""Run a side-by-side benchmark against a peer, from a source checkout.

    asrscope bench --list
    asrscope bench decode --json
    asrscope bench device --require cuda --json
    asrscope bench decode --audio corpus/ --transcripts corpus/transcripts.tsv

Every benchmark interleaves both sides and prints `ratio`: peer time / our time, so higher is better. `desk` has no peer
and prints the window's own figures; `device` has none either and says of each step what could be proved; `soak` watches
for an hour (or --minutes) whether memory, files or threads grow.
"""

import argparse
import importlib
import sys
from pathlib import Path

from app.cli import _output
from profiler.errors import BadInput

CHECKOUT = Path(__file__).parents[2]
NOT_BENCHES = {  # Commands of their own in the same folder: nothing they do has a peer
    *("attribution", "constants", "corpus", "measurements", "memory_use", "planted_causes", "session", "shots"),
    "whatif_check",
}

OPTIONS = {"require": "device", "only": "device", "minutes": "soak"}  # Options that one bench alone takes, and which


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="which bench")
    parser.add_argument("--list", action="store_true", help="print the names of the benches")
    _output.speech_flags(parser)
    help = "device: what must be here (any: an accelerator); default: an accelerator, else the processor"
    parser.add_argument("--require", choices=("cuda", "xpu", "mps", "torch-cpu", "any"), help=help)
    help = "device: these steps, even if done before"
    parser.add_argument("--only", metavar="STEP", nargs="+", default=[], help=help)
    _output.number_flag(parser, "--repeat", 1, 1000, "pairs of runs", 3)
    _output.number_flag(parser, "--minutes", 1, 10_000, "soak: how long")
    _output.json_flag(parser)


def names() -> list[str]:
    folder = CHECKOUT / "tests" / "bench"
    found = {file.stem for file in folder.glob("*.py") if not file.stem.startswith("_")}
    return sorted(found - NOT_BENCHES)


def run(arguments: argparse.Namespace) -> None:
    """Run the bench and print its result."""
    known = names()
    if arguments.list:
        print("\n".join(known))
        return
    if not known:
        raise BadInput("The benchmarks are part of the source checkout; this is an installed copy.")
    if arguments.name not in known:
        raise BadInput(f"bench must be one of {', '.join(known)}, not {arguments.name!r}.")
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))
    more = {key: value for key, value in vars(arguments).items() if key in OPTIONS and value}
    for key in more:
        if (of := OPTIONS[key]) != arguments.name:
            raise BadInput(f"--{key} is for `bench {of}`; the bench {arguments.name} has no use for it.")
    try:
        bench = importlib.import_module(f"tests.bench.{arguments.name}")
        if arguments.audio or arguments.transcripts:
            from pipelines.run import playlist

            # What is missing is said before anything is measured.
            playlist.build(arguments.audio, arguments.transcripts)
        with _output.Progress() as progress:
            tree = bench.run(arguments.audio, arguments.transcripts, arguments.repeat, progress, **more)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"The bench {arguments.name} needs {error.name}, which is not installed here; "
            "the extra `bench` has it: pip install 'asrscope[bench]'."
        ) from error
    tree = {"schema": 1, "bench": arguments.name, **tree}
    if arguments.json:
        _output.print_json(tree)
        return
    if tree["ratio"] is None:
        print(f"{arguments.name}: {tree['ratio_meaning']}")
        for key, value in tree["figures"].items():
            print(f"{key:>22} {_short(value)}")
    else:
        print(f"{arguments.name}: against {tree['peer']}")
        between = f"{tree['ratio_min']:.2f}…{tree['ratio_max']:.2f}"
        print(f"ratio {tree['ratio']:.2f} ({between}): {tree['ratio_meaning']}")
    for key, value in tree["agreement"].items():
        print(f"  {key}: {value}")
    for row in tree["rows"]:
        print("  " + "  ".join(f"{k}={_short(v)}" for k, v in row.items()))


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
