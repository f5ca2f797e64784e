"""The cache of search graphs, and the child process that compiles a missing one.

Compilation takes seconds to minutes and up to some GB, inside library calls that cannot be
interrupted; in a child process (`python -m pipelines.search.compile`) it can be killed at any
moment and its memory goes with it. The child reports its steps as JSON lines on stdout and ends
when its stdin closes, so that it never outlives the parent. Graphs are cached by the content of all
they are made from.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from pipelines.config import Graph as GraphConfig
from pipelines.models import dictionary as dictionaries
from pipelines.models.dictionary import Dictionary
from pipelines.models.sphinx import AcousticModel
from pipelines.search.build import COMPILER_VERSION, Recipe, compile_graph, from_mapping
from pipelines.search.wfst import VERSION, Graph, GraphError, load, save
from profiler.errors import Cancelled
from profiler.paths import cache_dir

Progress = Callable[[str, float | None], None]
POLL_S = 0.05
STALE_S = 24 * 3600.0
"""A build folder this old was left by a process that was killed."""
_BUILD_PREFIX = ".build-"


def default_language_model() -> Path:
    """The US-English trigram that the pocketsphinx package carries."""
    return dictionaries.default_path().with_name("en-us.lm.bin")


def recipe_of(
    config: GraphConfig,
    model: AcousticModel,
    dictionary: Dictionary | None = None,
    language_model: Path | None = None,
) -> Recipe:
    """What the settings ask for; the files default to those of the pocketsphinx package."""
    path = dictionary.path if dictionary is not None else None
    return Recipe(
        model=str(model.directory),
        dictionary=str(path or dictionaries.default_path()),
        language_model=str(language_model or default_language_model()),
        vocabulary=config.vocabulary,
        order=config.order,
        bigrams=config.bigrams,
    )


def load_or_build(
    config: GraphConfig,
    model: AcousticModel,
    dictionary: Dictionary | None = None,
    progress: Progress = lambda stage, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
    language_model: Path | None = None,
) -> Graph:
    """The graph for these settings, from the cache or compiled now.

    GraphError, LanguageModelError, DictionaryError or ModelError in one sentence; Cancelled.
    """
    recipe = recipe_of(config, model, dictionary, language_model)
    return load(build(recipe, progress, cancelled))


def build(
    recipe: Recipe,
    progress: Progress = lambda stage, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Path:
    """Path of the sound, cached graph of `recipe`; it is compiled if need be."""
    folder = cache_dir("graphs")
    path = folder / f"{cache_key(recipe)}.graph"
    if path.exists():
        try:
            load(path)
        except GraphError:
            progress("replacing a damaged graph in the cache", None)
            path.unlink(missing_ok=True)
        else:
            os.utime(path)
            return path
    _sweep(folder)
    # On the cache's own file system, so that the finished graph is renamed and never copied.
    work = Path(tempfile.mkdtemp(prefix=_BUILD_PREFIX, dir=folder))
    try:
        made = work / "graph"
        _run_child(recipe, made, progress, cancelled)
        made.replace(path)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return path


def cache_key(recipe: Recipe) -> str:
    """Hash of the content of all files, the options and the versions that decide the graph."""
    facts: dict[str, Any] = recipe.as_dict()
    model = Path(recipe.model)
    for name in ("mdef", "transition_matrices", "noisedict"):
        file = model / name
        facts[f"model/{name}"] = _digest(file) if file.exists() else None
    facts["model"] = ""
    for name in ("dictionary", "language_model"):
        facts[name] = _digest(Path(facts[name]))
    facts["versions"] = [COMPILER_VERSION, VERSION, importlib.metadata.version("kaldifst")]
    text = json.dumps(facts, sort_keys=True).encode()
    return f"{recipe.vocabulary}-{recipe.order}-{hashlib.sha256(text).hexdigest()[:24]}"


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise GraphError(f"{file} cannot be read: {error.strerror or error}.") from error


def _sweep(folder: Path) -> None:
    """Remove what a killed build left behind."""
    for left in folder.glob(f"{_BUILD_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > STALE_S:
                shutil.rmtree(left, ignore_errors=True)


def _run_child(
    recipe: Recipe, target: Path, progress: Progress, cancelled: Callable[[], bool]
) -> None:
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    # Its intermediate files go where the parent removes them, even when it has to be killed.
    environment = os.environ | {"PYTHONPATH": path, "TMPDIR": str(target.parent)}
    command = [sys.executable, "-m", "pipelines.search.compile", str(target)]
    child = subprocess.Popen(
        [*command, json.dumps(recipe.as_dict())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    errors: list[str] = []
    readers = [
        threading.Thread(target=_pump, args=(child.stdout, lines.put), daemon=True),
        threading.Thread(target=_collect, args=(child.stderr, errors), daemon=True),
    ]
    for reader in readers:
        reader.start()
    failure = ""
    try:
        while True:
            if cancelled():
                raise Cancelled
            try:
                line = lines.get(timeout=POLL_S)
            except queue.Empty:
                continue
            if line is None:
                break
            event = json.loads(line)
            failure = event.get("error", failure)
            if "stage" in event:
                progress(f"building graph: {event['stage']}", event["fraction"])
        code = child.wait()
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        for reader in readers:
            reader.join()
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                stream.close()
    if code == 0 and target.exists():
        return
    if failure:
        raise GraphError(failure)
    if code < 0:
        raise GraphError(
            f"The graph compiler was stopped by signal {-code}; a graph of {recipe.vocabulary} "
            "words needs about a gigabyte of memory."
        )
    last = (errors or ["no message"])[-1].strip()
    raise GraphError(f"The graph compiler ended with code {code}: {last}")


def _pump(stream: IO[str], put: Callable[[str | None], None]) -> None:
    for line in stream:
        put(line)
    put(None)


def _collect(stream: IO[str], lines: list[str]) -> None:
    lines.extend(line for line in stream if line.strip())


def main(arguments: Sequence[str] | None = None) -> int:
    """The child: `compile TARGET RECIPE-AS-JSON`; not meant to be called by people."""
    target, recipe = arguments if arguments is not None else sys.argv[1:]

    def end_with_parent() -> None:
        sys.stdin.read()
        os._exit(3)

    def say(**event: object) -> None:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        graph = compile_graph(
            from_mapping(json.loads(recipe)),
            lambda stage, fraction: say(stage=stage, fraction=fraction),
        )
        save(graph, target)
    except (ValueError, OSError) as error:
        say(error=str(error))
        return 2
    except MemoryError:
        say(error="The graph compiler ran out of memory; a smaller vocabulary needs less.")
        return 2
    sys.stdout.flush()
    # Not through the interpreter's shutdown: a thread still waits on stdin.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
