"""Search graphs: what they cost to build and to load.

    asrscope bench graphs

Every graph is built by the child process that builds it for a run, whose processor time and largest memory
the system reports. There is no peer.
"""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from pipelines.config import Graph
from pipelines.models import sphinx
from pipelines.search.graph.recipe import Recipe, recipe_of
from pipelines.search.graph.wfst import load
from profiler.errors import BadInput
from profiler.files import cache
from profiler.files.paths import cache_path
from profiler.process import children
from tests.bench._rounds import Progress, timed, without_peer

GRAPHS: dict[str, dict[str, Any]] = {
    "digits": {"grammar": "digits"},
    "cards": {"grammar": "cards"},
    "1k unigram": {"vocabulary": 1000, "order": 1},
    "1k bigram": {"vocabulary": 1000},
    "5k bigram": {},
    "5k trigram": {"order": 3},
    "20k bigram": {"vocabulary": 20_000},
    "20k trigram": {"vocabulary": 20_000, "order": 3},
    "20k trigram, 600k + 600k": {"vocabulary": 20_000, "order": 3, "bigrams": 600_000, "trigrams": 600_000},
    "all words, bigram": {"vocabulary": 1_000_000},
}


def run(paths: list[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    if paths or transcripts:
        raise BadInput("bench graphs builds graphs; it takes no --audio.")
    model = sphinx.load(sphinx.default_directory())
    rows: list[dict[str, Any]] = []
    home = cache_path(cache.GRAPHS)
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".build-bench-") as folder:
        place = Path(folder) / "graph"
        for name, settings in GRAPHS.items():
            progress(f"building {name}", len(rows) / len(GRAPHS))
            rows.append({"graph": name, **built(recipe_of(Graph(**settings), model), place)})
    figures = {"graphs": len(rows), "cpu_s": sum(row["cpu_s"] for row in rows)}
    return without_peer(": what each graph costs to build and to load", figures, {}, rows)


def built(recipe: Recipe, place: Path) -> dict[str, Any]:
    """Build `recipe` into `place` in a child of its own: time, memory, and the size of the graph."""
    start = time.perf_counter()
    child = subprocess.Popen(
        children.python("-m", "pipelines.search.graph.compile", str(place), json.dumps(recipe.as_dict())),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=children.environment({"TMPDIR": str(place.parent)}),
    )
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.stdin is not None
    child.stdin.close()
    if child.returncode:
        raise RuntimeError(f"the graph compiler ended with code {child.returncode}")
    graphs, seconds = zip(*(timed(lambda: load(place)) for _ in range(5)), strict=True)
    return {
        "wall_s": wall,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_gb": used.ru_maxrss / (1 << 20),
        "load_s": median(seconds),
        "file_mb": place.stat().st_size / 1e6,
        "states": graphs[0].n_states,
        "arcs": graphs[0].n_arcs,
    }
