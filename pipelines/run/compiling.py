"""Compiles the kernels of front end and scoring in a child process, while this one builds the search graph.

Only once for each kind of model: the child leaves a mark next to the kernels that numba keeps. It ends when its
standard input closes, so that it never outlives its parent. What it could not compile, the parent compiles.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numba

from pipelines import config as settings
from pipelines.config import Config
from pipelines.models.opening import front_end, open_model
from pipelines.scoring import build_scorer
from profiler.errors import Cancelled
from profiler.process import children
from profiler.process.entry import read_arguments

POLL_S: Final = 0.05
MODULE: Final = "pipelines.run.compiling"


def mark(config: Config) -> Path | None:
    """The file that says that the kernels for this kind of model are compiled; None where numba keeps none."""
    folder = str(numba.config.CACHE_DIR)  # type: ignore[attr-defined]  # made when it is loaded
    # A folder of one's own may hold a model of another kind than the one that ships.
    own = "-own" if config.model_directory else ""
    return Path(folder) / f"compiled-{config.model}{own}" if folder else None


@contextmanager
def in_child(config: Config, command: Sequence[str] = ()) -> Iterator[Callable[[Callable[[], bool]], None]]:
    """Begin to compile, where it was never done; what is given waits for the end, or raises Cancelled.

    `command`: what to run instead of this module, for a test.
    """
    made = mark(config)
    if made is None or made.exists() or config.device != "cpu":
        yield lambda _cancelled: None
        return
    child = subprocess.Popen(
        [*(command or children.python("-m", MODULE)), json.dumps(settings.to_dict(config))],
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
        if child.poll() is None:
            child.kill()
        assert child.stdin is not None
        child.stdin.close()
        child.wait()


def compile_for(config: Config) -> None:
    """Compile (or load) the kernels of front end and scoring for a configuration, and leave the mark."""
    model = open_model(config)
    front_end(model).warm_up()
    build_scorer(config, model).warm_up()
    if (made := mark(config)) is not None:
        made.touch()


def main(arguments: Sequence[str] | None = None) -> int:
    """The child: its argument is a configuration as JSON; not meant to be called by people."""
    (text,) = read_arguments(MODULE, __doc__, "CONFIGURATION", arguments=arguments)
    children.end_with_parent()
    compile_for(settings.from_dict(json.loads(text)))
    # Not through the interpreter's shutdown: a thread still waits on stdin.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
