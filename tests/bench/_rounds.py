"""What benches share: variants of the same work in turns, ratios of rounds, results kept, decoding and scoring."""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product, takewhile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

import pipelines
from pipelines.run.interleave import turns
from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.files.outputs import writing
from profiler.files.paths import cache_dir
from profiler.process import children
from profiler.spans import NullLane, Recorder

if TYPE_CHECKING:
    from pipelines.config import Config
    from pipelines.run.playlist import Item

Progress = Callable[[str, float | None], None]
Tree = dict[str, Any]
T = TypeVar("T")
LANE = NullLane()
MB = 1e6
SCORES_BY = ("scoring", "search", "models", "frontend", "config")
"""The folders of `pipelines` that decide scores and words."""


@dataclass
class Side:
    """A variant of the work: seconds that an utterance takes, and of each round over all of them."""

    name: str
    take: Callable[[Any], float]
    seconds: list[float] = field(default_factory=list)


class Answering(Side):
    """A side whose answers are kept by the utterance's name: `work` returns an answer and the seconds that it took."""

    def __init__(self, name: str, work: Callable[[Any], tuple[Any, float]]) -> None:
        super().__init__(name, self._answer)
        self.answers: dict[str, Any] = {}
        self._work = work

    def _answer(self, utterance: Any) -> float:
        self.answers[getattr(utterance, "name", utterance)], seconds = self._work(utterance)
        return seconds


def interleave(
    sides: Sequence[Side], speech: Sequence[Any], rounds: int, progress: Callable[[float], None] = lambda fraction: None
) -> None:
    """Every utterance through all sides, one after the other, the order turning; once before the time counts."""
    for side in sides:
        side.take(speech[0])
        side.seconds = [0.0] * rounds
    for turn, place, number in turns(len(sides), len(speech), range(rounds)):
        progress(turn / rounds)
        sides[number].seconds[turn] += sides[number].take(speech[place])


def paired(slow: Side, fast: Side) -> list[float]:
    """Ratio of the times of two sides in each round."""
    return [a / b for a, b in zip(slow.seconds, fast.seconds, strict=True)]


def spread(ratios: Sequence[float]) -> dict[str, float]:
    """Median, least and most of the ratios of paired rounds, as in the JSON of a bench."""
    return {"ratio": median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios)}


def result(peer: str, ratios: Sequence[float], meaning: str, agreement: Tree, rows: list[Any]) -> Tree:
    return {"peer": peer, **spread(ratios), "ratio_meaning": meaning, "agreement": agreement, "rows": rows}


def without_peer(meaning: str, figures: Tree, agreement: Tree, rows: list[Any], peer: str | None = None) -> Tree:
    none = dict.fromkeys(("ratio", "ratio_min", "ratio_max"))
    about = {"peer": peer, **none, "ratio_meaning": f"no peer{meaning}"}
    return {**about, "figures": figures, "agreement": agreement, "rows": rows}


def lost(audited: Any, title: str) -> Tree:
    """Points of WER that an audited configuration loses, and their interval, under `title`."""
    change, interval = audited.wer_change, audited.wer_change_interval()
    return {
        title: None if change is None else 100 * change,
        f"{title}, 95 % interval (paired bootstrap)": interval and [100 * end for end in interval],
    }


def timed(call: Callable[[], T], clock: Callable[[], float] = time.perf_counter) -> tuple[T, float]:
    """What `call` returns, and the seconds it takes."""
    start = clock()
    returned = call()
    return returned, clock() - start


@contextmanager
def undisturbed(threads: int = 1) -> Iterator[None]:
    """No garbage collection over what was loaded, as in a run, and this many threads in BLAS."""
    gc.collect()
    gc.freeze()
    try:
        with threadpool_limits(threads):
            yield
    finally:
        gc.unfreeze()


def opened(config: Config, progress: Progress) -> Any:
    """The recogniser of `config`, with the recorder off."""
    from pipelines.run.recogniser import build

    return build(config, Recorder(), LANE, progress, lambda: False)


def decoding(recogniser: Any) -> Callable[[Item], tuple[str, float]]:
    """Work of this recogniser for `Answering`: the words of an utterance, decoded with the recorder off."""
    # Only here: benches of sessions measure the memory of a process without a recogniser.
    from pipelines.run.control import Control
    from pipelines.run.decode import Decoder
    from profiler.session.writer import NullWriter

    def decode(item: Item) -> tuple[str, float]:
        decoder = Decoder(recogniser, Recorder(), LANE, NullWriter(), Control())
        (utterance,) = decoder.run([item]).utterances
        return utterance.hypothesis, utterance.wall_ns / 1e9

    return decode


def features_of(frontend: Any, items: Iterable[Item], most_s: float) -> list[Array]:
    """Features f32 [frames, dim] of the first of `items`, up to about `most_s` seconds."""
    from pipelines.experiments.scoring_replay import spoken

    return [frontend.features(sound.samples, 0, LANE) for _, sound in spoken(items, most_s)]


def pcm(sound: Any) -> Array:
    """The samples of a sound as 16-bit integers."""
    return np.clip(np.round(sound.samples * 32768.0), -32768, 32767).astype("<i2")


def scored(scorer: Any, features: Array, block: int) -> Array:
    """Scores f32 [frames, senones] of an utterance, whose features have the scorer's context at both ends."""
    scorer.reset()
    beyond = sum(scorer.context)
    begins = range(0, len(features) - beyond, block)
    return np.concatenate([np.array(scorer.score(features[at : at + block + beyond], at, LANE)) for at in begins])


def found_words(decoder: Any, scores: Array) -> list[str]:
    """What a search finds in the scores of an utterance, given at once."""
    decoder.start(0)
    decoder.advance(scores, 0)
    return [word for word, _, _ in decoder.finish()]


def command_line(module: str, about: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"python -m tests.bench.{module}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def printing(parser: argparse.ArgumentParser, measure: Callable[[argparse.Namespace], Any], *words: str) -> int:
    """`main` of a command of its own: print what `measure` returns, as it is or as JSON; 2 where data is missing."""
    given = parser.parse_args(words or None)
    try:
        made = measure(given)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    print(made if isinstance(made, str) else json.dumps(made, ensure_ascii=False))
    return 0


def printing_table(
    module: str, about: str | None, repeat: int, run: Callable[..., Tree], text: Callable[[Any], str]
) -> int:
    """`main` of a bench that makes a page: print the text of the rows that `run` returns."""
    parser = command_line(module, about)
    parser.add_argument("--repeat", type=int, default=repeat, metavar="N", help="rounds of timing")
    return printing(parser, lambda options: text(run([], None, options.repeat, progress_lines)["rows"]))


def markdown(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table of Markdown; ValueError where a row has other columns than the head."""
    lines = [head, ["---"] * len(head), *rows]
    if any(len(line) != len(head) for line in lines):
        raise ValueError("a row has other columns than the table")
    cells = ([str(cell).replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def printed(command: str, names: Mapping[str, object], more: Sequence[str] = ()) -> list[Any]:
    """Run `command`, with the words `more` behind it, in a child; the JSON values that it prints, one after the other.
    Names in capitals are replaced by what they stand for; words with `=` before the program are variables. BadInput in
    its own words where it fails."""
    words = [re.sub(r"\b[A-Z]{4,}\b", lambda name: str(names.get(name[0], name[0])), w) for w in shlex.split(command)]
    variables = dict(word.split("=", 1) for word in takewhile(lambda word: "=" in word, words))
    program, *rest = words[len(variables) :]
    done = subprocess.run(
        children.python(*(("-m", "app.cli.main") if program == "asrscope" else ()), *rest, *more),
        env=children.environment(variables),
        cwd=children.ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise BadInput(f"`{command}` failed: {children.last_words(done.stderr, done.returncode)}")
    values, text = [], done.stdout.strip()
    try:
        while text:
            value, end = json.JSONDecoder().raw_decode(text)
            values.append(value)
            text = text[end:].lstrip()
    except ValueError as error:
        raise BadInput(f"`{command}` printed what is not JSON: {error}.") from error
    return values


def in_turns(repeat: int, cases: Iterable[T]) -> Iterator[tuple[int, T]]:
    """Every case once in each round, so that a busy minute does not hit one alone; BadInput without a round."""
    if repeat < 1:
        raise BadInput(f"There must be at least 1 round, not {repeat}.")
    for number, case in product(range(1, repeat + 1), cases):
        print(f"round {number} of {repeat}: {case}", file=sys.stderr)
        yield number, case


def progress_lines(title: str, fraction: float | None) -> None:
    sys.stderr.write(f"{title}{'' if fraction is None else f' {fraction:.0%}'}\n")


class Kept:
    """Results in the cache that no machine changes: they depend on the configuration, the speech and the sources that
    decide scores and words, and on other files of `pipelines` by name. An interrupted table goes on where it stopped.
    """

    def __init__(self, bench: str, items: Iterable[Item], *files: str) -> None:
        self._folder, pipelines_ = cache_dir("bench", bench), Path(str(pipelines.__file__)).parent
        scoring = sorted(file for room in SCORES_BY for file in (pipelines_ / room).rglob("*.py"))
        sources = [digest_of(file.read_bytes()) for file in (*scoring, *(pipelines_ / name for name in files))]
        self._decides = "\n".join([*(f"{item.name}:{item.reference}" for item in items), *sources])

    def get(self, config: Config) -> Any | None:
        file = self._file(config)
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    def put(self, config: Config, value: T) -> T:
        """Keep `value` as JSON, whole or not at all, and return it."""
        with writing(self._file(config), "the result") as draft:
            draft.write_text(json.dumps(value), encoding="utf-8")
        return value

    def _file(self, config: Config) -> Path:
        """Where the value for `config` is kept; the net that it uses decides as well."""
        from pipelines import config as settings
        from pipelines.models import nets

        net = nets.find(config.dnn.net) if config.model == "dnn" else None
        parts = [part.read_bytes() for part in (net, net.with_suffix(".json")) if part.exists()] if net else []
        about = [self._decides, json.dumps(settings.to_dict(config), sort_keys=True), *map(digest_of, parts)]
        return self._folder / f"{digest_of(''.join(about).encode())[:24]}.json"


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
