"""Finds a search graph in the cache, or has a child process compile it.

The child (`python -m pipelines.search.graph.compile`) can be killed inside library calls, which take minutes and some
GB. It reports its steps as JSON lines on stdout and ends when its stdin closes, so that it never outlives the parent.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pipelines.config import Graph as GraphConfig
from pipelines.models.sphinx import AcousticModel
from pipelines.search.graph import cache as store
from pipelines.search.graph import hclg
from pipelines.search.graph.build import compile_graph
from pipelines.search.graph.lookahead import folder
from pipelines.search.graph.recipe import Recipe, recipe_of
from pipelines.search.graph.wfst import Graph, GraphError, load, save
from profiler.errors import Cancelled
from profiler.files import cache
from profiler.process import children, limits
from profiler.process.children import read_arguments

Progress = Callable[[str, float | None], None]
Compiler = Callable[[Recipe, Callable[[str, float], None]], Graph]
MODULE = "pipelines.search.graph.compile"  # What the child runs: a module whose `main` is this one's, with a compiler
POLL_S = 0.05
MEMORY_BYTES = 4 << 30
"""What the compiler may take: enough for every vocabulary that ships, and little enough for a small machine."""
TOO_LARGE = (
    f"The graph takes over {MEMORY_BYTES / 1e9:.1f} GB to compile; fewer words (graph.vocabulary) or n-grams "
    "(graph.bigrams, graph.trigrams) take less."
)


def load_or_build(
    config: GraphConfig,
    model: AcousticModel,
    progress: Progress = lambda stage, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Graph:
    """The graph for these settings, from the cache or compiled now, or the one that lies in a Kaldi model's folder.

    One whose parts lie there (HCLr.fst and Gr.fst) is composed in this process, which looks at `cancelled` meanwhile.
    BadInput in one sentence; Cancelled.
    """
    if model.kaldi is not None and (path := hclg.file_of(config, model)) is not None:
        progress("reading the graph", None)
        if path.name != folder.HCL:
            return hclg.load(path, model, model.kaldi)
        given = path, model, model.kaldi
        make = partial(folder.make, *given, silent=hclg.is_no_word, progress=progress, cancelled=cancelled)
        return _obtain(folder.cached_as(*given), make, progress, cancelled)[1]
    return obtain(recipe_of(config, model), progress, cancelled)[1]


def obtain(
    recipe: Recipe,
    progress: Progress = lambda stage, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
    module: str = MODULE,
) -> tuple[Path, Graph]:
    """The graph of `recipe` and its place; it is compiled by `module` if need be, and kept where there is a cache."""
    make = partial(_run_child, recipe, module=module, progress=progress, cancelled=cancelled)
    return _obtain(store.path_of(recipe), make, progress, cancelled)


def _obtain(
    path: Path, make: Callable[[Path], None], progress: Progress, cancelled: Callable[[], bool]
) -> tuple[Path, Graph]:
    """The graph that the cache keeps as `path`; `make` writes it elsewhere if it is not there."""
    if (graph := _cached(path, progress)) is not None:
        return path, graph
    waited: list[bool] = []

    def wait() -> None:
        if cancelled():
            raise Cancelled
        if not waited:
            progress("waiting for another program that builds this graph", None)
            waited.append(True)
        time.sleep(POLL_S)

    with store.workplace(path, wait) as place:
        # Another program may just have finished it.
        graph = _cached(path, progress)
        if graph is None:
            made = place / path.name
            make(made)
            try:
                cache.clear(path)
                made.replace(path)
            except OSError:  # a cache that this user may only read
                return made, load(made)
            graph = load(path)
    cache.evict(keep=path)
    return path, graph


def _cached(path: Path, progress: Progress) -> Graph | None:
    if not os.path.lexists(path):
        return None
    try:
        graph = load(path)
    except GraphError:
        progress("replacing a damaged graph in the cache", None)
        return None
    cache.used(path)
    return graph


def _run_child(recipe: Recipe, target: Path, module: str, progress: Progress, cancelled: Callable[[], bool]) -> None:
    # In a file: the units of a net may be more than an argument can hold.
    given = target.with_name("recipe.json")
    given.write_text(json.dumps(recipe.as_dict()))
    failure = ""

    def hear(line: bytes) -> None:
        nonlocal failure
        event = json.loads(line)
        failure = event.get("error", failure)
        if "stage" in event:
            progress(f"building graph: {event['stage']}", event["fraction"])

    # Its intermediate files go where the parent removes them, even when it has to be killed.
    command = children.python("-m", module, str(target), str(given))
    code, complaints = children.listen(command, hear, cancelled, extra={"TMPDIR": str(target.parent)})
    if code == 0 and target.exists():
        return
    if "bad_alloc" in complaints and not failure:  # where the library lets it through
        failure = TOO_LARGE
    if code == -signal.SIGKILL and not failure:
        failure = (
            f"The graph compiler was stopped by signal {-code}, as happens when memory runs out; "
            "fewer words or n-grams need less."
        )
    raise GraphError(failure or f"The graph compiler failed: {children.last_words(complaints, code)}.")


def main(arguments: Sequence[str] | None = None, compiler: Compiler = compile_graph) -> int:
    """The child: `compile TARGET RECIPE`, the recipe as a JSON file; not meant to be called by people."""
    target, recipe = read_arguments(MODULE, __doc__, "TARGET", "RECIPE", arguments=arguments)

    def say(**event: object) -> None:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()

    children.end_with_parent()
    limits.lower(RLIMIT_AS=MEMORY_BYTES, RLIMIT_DATA=MEMORY_BYTES, RLIMIT_CORE=0)
    try:
        wanted = Recipe(**json.loads(Path(recipe).read_text()))
        graph = compiler(wanted, lambda stage, fraction: say(stage=stage, fraction=fraction))
        save(graph, Path(target))
    except Exception as error:
        if not isinstance(error, ValueError | OSError) and not limits.shortage(error):
            raise
        say(error=TOO_LARGE if limits.shortage(error) else limits.sentence(error))
        return 2
    sys.stdout.flush()
    # Not through the interpreter's shutdown: a thread still waits on stdin.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
