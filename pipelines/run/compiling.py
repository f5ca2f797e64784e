"""Compiles the kernels that settings need in a child process: while a run is prepared, and during it for a live change.

Only once for each choice: the child leaves a mark, next to the kernels that numba keeps, which holds the settings. It
ends when its standard input closes, so that it never outlives its parent, which compiles what is lacking then.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

import numba

from pipelines import config as settings
from pipelines.config import Config
from pipelines.models.opening import front_end, open_model
from pipelines.scoring import build_scorer, is_lazy, kernels_of, peaks
from pipelines.scoring.strategy import never, quietly
from pipelines.search.graph.wfst import smallest_graph
from pipelines.search.viterbi import Viterbi
from profiler.errors import Cancelled
from profiler.machine.roofs import calibration
from profiler.process import children, kernel_cache
from profiler.process.children import read_arguments

POLL_S: Final = 0.05
MODULE: Final = "pipelines.run.compiling"


def with_selection(config: Config) -> Config | None:
    """The settings with the Gaussian selection that is to be prepared in advance; None: none is."""
    chosen = config.gmm.selection
    if not chosen.prepare or chosen.enabled or settings.unavailable_reason(config, "gmm.selection.prepare"):
        return None
    return settings.replace(config, "gmm.selection.enabled", True)


@cache
def _kept(kernels: str) -> Path:
    return kernel_cache.folder(Path(__file__).resolve(), Path(kernels))


def _mark(config: Config, kernels: str) -> Path:
    kept = _kept(numba.config.CACHE_DIR)  # type: ignore[attr-defined]  # made when it is loaded
    # A folder of one's own may hold a model of another kind than the one that ships.
    kind = f"{config.model}-own" if config.model_directory else config.model
    return kept / f"compiled-{kind}-{kernels}"


def marks(config: Config) -> dict[Path, Config]:
    needed = filter(None, (config, with_selection(config)))
    return {_mark(config, kernels_of(each)): each for each in needed}


def known(config: Config) -> Iterator[Config]:
    """Other settings of the same model for which kernels are compiled: loaded in advance, they act at once."""
    every = _mark(config, "*")
    for mark in sorted(every.parent.glob(every.name)):
        with suppress(OSError, ValueError):  # one that is being written, or of other settings than there are now
            yield settings.from_dict(json.loads(mark.read_text()))


def is_compiled(config: Config) -> bool:
    return config.device != "cpu" or all(mark.exists() for mark in marks(config))


@contextmanager
def in_child(
    config: Config, command: Sequence[str] = (), *, live: bool = False
) -> Iterator[Callable[[Callable[[], bool]], None]]:
    """Begin to compile, where it was never done; what is given waits for the end, or raises Cancelled.

    `live`: for a live change. `command`: what to run instead of this module, for a test.
    """
    if is_compiled(config):
        yield lambda _cancelled: None
        return
    given = [json.dumps(settings.to_dict(config)), *["live"] * live]
    child = subprocess.Popen(
        [*(command or children.python("-m", MODULE)), *given],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl+C is the parent's to answer
        env=children.environment(),
    )

    def wait(cancelled: Callable[[], bool]) -> None:
        while child.poll() is None:
            if cancelled():
                raise Cancelled
            time.sleep(POLL_S)

    try:
        yield wait
    finally:
        child.kill()  # nothing where it has ended
        assert child.stdin is not None
        child.stdin.close()
        child.wait()


def beside(config: Config) -> Callable[[Callable[[], bool]], None] | None:
    """Return what compiles for a live change, and can be cancelled; None where that was done."""

    def compile_and_wait(cancelled: Callable[[], bool]) -> None:
        with in_child(config, live=True) as wait:
            wait(cancelled)

    return None if is_compiled(config) else compile_and_wait


def compile_for(config: Config, live: bool = False) -> None:
    """Compile (or load) needed kernels, of the search for a `live` change alone (a run does that); leave the marks."""
    model = open_model(config)
    front_end(model).warm_up()
    scorer = build_scorer(config, model)
    scorer.warm_up()
    if (other := with_selection(config)) is not None:
        scorer.make_ready(other, quietly, never)
    if live and is_lazy(config):
        Viterbi(smallest_graph(), config.search).warm_up()
    calibration.warm_up(config.threads, peaks.of(config))
    for made, chosen in marks(config).items():
        made.write_text(json.dumps(settings.to_dict(chosen)))


def main(arguments: Sequence[str] | None = None) -> int:
    """The child: its argument is a configuration as JSON; not meant to be called by people."""
    text, *live = read_arguments(MODULE, __doc__, "CONFIGURATION", "LIVE?", arguments=arguments)
    children.end_with_parent()
    compile_for(settings.from_dict(json.loads(text)), bool(live))
    # Not through the interpreter's shutdown: a thread still waits on stdin.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
