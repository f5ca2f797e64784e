"""Train the nets that the program scores with.

    python -m pipelines.training prepare --shards 18 --labels --human FOLDER/*.flac
                                                                    features of flite's voices and of recordings
    python -m pipelines.training train base --minutes 60            a net; goes on where it was stopped
    python -m pipelines.training export base                        its weights and card, for `dnn.net=base`
    python -m pipelines.training evaluate base --audio FOLDER --transcripts FOLDER/transcripts.tsv
    python -m pipelines.training recipes                            what there is to train, and how far it is

Train and export large and base first, then small, small-hard, low-rank, sparse and sparse-blocks, then multi-frame:
3 to 16 minutes each where a core is free, about an hour in all. A shard is 256 utterances, 0.12 million frames.
Data and checkpoints lie in the cache folder, under `training`. Everything may be interrupted (Ctrl-C, SIGTERM)
and started again. Never give `prepare` recordings that are tested on.
"""

import argparse
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pipelines.config import parse_assignment
from pipelines.models import sphinx
from pipelines.training import recipes
from pipelines.training.corpus import data, labels
from pipelines.training.corpus.data import SENTENCES, CorpusError
from profiler.errors import BadInput
from profiler.files.paths import cache_dir
from profiler.plain import counted


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says; 2 with one sentence where that cannot be."""
    given = _parser().parse_args(arguments)
    try:
        given.verb(given)
    except (BadInput, OSError) as error:
        sys.stderr.write(f"\n{error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(name: str, function: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=function.__doc__, description=function.__doc__)
        made.set_defaults(verb=function)
        return made

    made = verb("prepare", prepare)
    defaults = data.DataRecipe()
    made.add_argument("--text", type=Path, default=SENTENCES, help="sentences, one per line")
    made.add_argument(
        "--human", nargs="*", default=(), metavar="FILE", help="recordings without transcripts; the last is held out"
    )
    made.add_argument("--passes", type=int, default=defaults.passes, help="of each sentence")
    made.add_argument("--human-passes", type=int, default=defaults.human_passes, help="of each recording")
    made.add_argument("--shards", type=int, help="make only the first N")
    made.add_argument("--labels", action="store_true", help="align what was spoken with its words, for hard labels")
    made = verb("train", train)
    made.add_argument("name", help="of a recipe")
    made.add_argument("--data", type=Path, help="folder of shards (default: the newest)")
    made.add_argument("--minutes", type=float, help="stop after so long, to go on another time")
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--device", default="cpu", help="cpu, cuda, …, as torch calls it")
    made = verb("export", export)
    made.add_argument("name", help="of a recipe")
    made.add_argument("--to", type=Path, help="folder (default: where the program looks)")
    made = verb("evaluate", evaluate)
    made.add_argument("names", nargs="+", help="of exported nets, or their paths")
    made.add_argument("--audio", nargs="+", required=True)
    made.add_argument("--transcripts")
    made.add_argument(
        "--set",
        nargs="+",
        default=(),
        metavar="KEY=VALUE",
        help="settings to decode with the nets by, such as frames.skip=2",
    )
    made.add_argument("--note", metavar="NAME", help="write the result into the cards of the nets, as NAME")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    verb("recipes", show)
    return parser


def prepare(options: argparse.Namespace) -> None:
    """Make the shards of training data and print their folder."""
    recipe = data.DataRecipe(
        text=str(options.text), passes=options.passes, human=tuple(options.human), human_passes=options.human_passes
    )
    folder = cache_dir("training", f"data-{recipe.digest}")
    model = sphinx.load(sphinx.default_directory())
    data.prepare(recipe, folder, model.feat_params, _Shown(), options.shards)
    if options.labels:
        labels.prepare(recipe, folder, model, _Shown())
    sys.stdout.write(f"{folder}\n")


def train(options: argparse.Namespace) -> None:
    """Train the net of a recipe, or go on with it."""
    import torch

    from pipelines.training.train import begin

    torch.set_num_threads(options.threads)
    trainer = begin(recipes.find(options.name), options.data or _newest_data(), torch.device(options.device))
    trainer.run(_stop_after(options.minutes), _Shown())
    place, recipe = trainer.place, trainer.recipe
    state = "finished" if trainer.finished else f"stopped at {place.frames} of {recipe.frames}"
    sys.stdout.write(f"{recipe.name}: {state} frames, {place.seconds / 60:.1f} min; {trainer.folder}\n")


def export(options: argparse.Namespace) -> None:
    """Write a trained net in the form that the program reads, fp16 with a card."""
    from pipelines.training.checkpoint import export as write

    sys.stdout.write(f"{write(recipes.find(options.name), options.to)}\n")


def evaluate(options: argparse.Namespace) -> None:
    """Decode with nets and with the mixtures that taught them, and print the word errors of each."""
    from pipelines.training.evaluate import MIXTURES, as_json, note, word_errors

    settings = dict(parse_assignment(text) for text in options.set)
    counts = word_errors([MIXTURES, *options.names], options.audio, options.transcripts, _Shown(), settings)
    if options.json:
        sys.stdout.write(f"{json.dumps(as_json(counts))}\n")
    else:
        for name, count in counts.items():
            sys.stdout.write(
                f"{name}: {counted(count.errors, 'error', 'errors')} in "
                f"{counted(count.reference_words, 'word', 'words')} ({count.rate:.3f})\n"
            )
    if options.note:
        for name in options.names:
            note(name, options.note, counts)


def show(_: argparse.Namespace) -> None:
    """List the recipes, and how far each net is."""
    for recipe in recipes.RECIPES.values():
        log = cache_dir("training") / recipe.name / "log.jsonl"
        state = "not begun"
        if log.exists() and (lines := log.read_text(encoding="utf-8").splitlines()):
            last = json.loads(lines[-1])
            took = f"{last['frames']} frames in {last['seconds'] / 3600:.2f} h"
            state = f"{took}, divergence on held-out frames {last['held_out']:.4f}"
        sys.stdout.write(f"{recipe.name}: {recipe.title}; {recipe.frames} frames; {state}\n")


def _newest_data() -> Path:
    found = sorted(cache_dir("training").glob("data-*"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise CorpusError("There is no training data yet; `prepare` makes it.")
    return found[-1]


def _stop_after(minutes: float | None) -> Callable[[], bool]:
    """Whether to stop: after a time limit or a signal."""
    end = math.inf if minutes is None else time.monotonic() + 60 * minutes
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    return lambda: asked.is_set() or time.monotonic() >= end


class _Shown:
    """Progress on one line of a terminal each second, or a line a minute in a file."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._due = 0.0

    def __call__(self, what: str, part: float | None) -> None:
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + (1.0 if self._terminal else 60.0)
        text = what if part is None else f"{100 * part:5.1f} % {what}"
        sys.stderr.write(f"\r\033[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
