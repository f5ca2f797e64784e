"""The window's figures: the real window with a real run, in processes of its own, offscreen and on an X server.

    asrscope bench desk --json

There is no peer, so there is no ratio. `figures` holds the worse of both platforms; `rows` has each, with p50 and p99:

- live: the demo runs for a minute in the default layout (cost, timeline, words, breakdown), 1600 × 1000. An update is a
  painting of the cost chart at another cursor; a gap is more than 50 ms without a turn of the event loop, and it is the
  window's own where the GUI thread computed for most of it. `gui_core_share`: processor time of the whole process
  of the window, all threads, per second.
- paced: the same at forced intervals of 33, 50, 100 and 200 ms in turns. The line through their shares of a core has
  the fixed work per second (`fixed_core_share`) and the work per update (`update_ms`). Again with painting of plots,
  their reduction, the breakdown, and texts and figures left out, one at a time: `…_of` is what each takes of both.
- start: from the start of the process to the first painting of the window, to its bars, and to the charts.
- million: a session of a million spans is opened in a running window (until the charts in sight are painted; the
  median of three), then panned and zoomed; a step lasts from the gesture until each of them is painted.
- hour: an hour at block 1, opened: resident memory.
- cycles: sessions opened and closed, windows made and closed; objects, threads and files that each leaves behind.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from profiler.process import children
from tests.bench import _sessions
from tests.bench._rounds import Tree, without_peer

SPANS: Final = 1_000_000
HOUR_BLOCKS: Final = 360_000  # an hour at block 1: the spans of every frame
LIVE_S: Final = 60
ROUNDS: Final = 3
STARTS: Final = 7
OPENINGS: Final = 2
"""Besides the one that is panned and zoomed: the first touch of memory can take ten times as long in a VM."""
LIMIT_S: Final = 400
SCREEN: Final = "1920x1200x24"
LARGER_IS_BETTER: Final = {"updates_per_s"}


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Callable[..., None]) -> Tree:
    """Measure on every platform there is; the arguments are those of all benches and unused."""
    rows: list[Tree] = []
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as name:
        folder = Path(name)
        for platform, extra in (("offscreen", nullcontext({})), *[("xcb", _x_server())] * bool(shutil.which("Xvfb"))):
            with extra as environment:
                part = partial(_part, progress, platform, environment)
                try:
                    part("opens")
                except RuntimeError as error:  # Qt can open no window there; a library may be missing
                    missing[platform] = f"no {platform} figures: {' '.join(str(error).split())}"
                    progress(missing[platform], None)
                    continue
                rows += [part("live", str(LIVE_S)), part("paced", str(ROUNDS))]
                starts = [part("start") for _ in range(STARTS)]
                rows.append(starts.pop(0))  # the first one warms the cache of files
                for key in [key for key in rows[-1] if key.endswith("_s")]:
                    every = [start[key] for start in starts]
                    rows[-1] |= {key: round(median(every), 3), f"{key}_most": max(every)}
                million = _recorded(folder / "million.asrs", SPANS // (len(_sessions.LEAVES) + 1))
                opened = [part("million", million) for _ in range(OPENINGS)]
                rows.append(part("million", million, "pan and zoom"))
                times = [one["open_1e6_s"] for one in (*opened, rows[-1])]
                rows[-1] |= {"open_1e6_s": median(times), "open_1e6_s_most": max(times)}
        for part_of, blocks, block in (("hour", HOUR_BLOCKS, 1), ("cycles", 200, 16)):
            recorded = _recorded(folder / f"{part_of}.asrs", blocks, block)
            rows.append(_part(progress, "offscreen", {}, part_of, recorded))
    agreement = {
        "live": "an update is a painted cost chart at another cursor, each counted once",
        "gaps": "event loop looked at every 10 ms; own: the GUI thread computed for most of the gap",
        **missing,
    }
    return without_peer(": the window's own figures", _figures(rows), agreement, rows, "none")


FIGURES: Final = (
    *("updates_per_s", "gui_core_share", "gaps_over_50ms", "own_gaps_over_50ms", "first_paint_s", "open_1e6_s"),
    *("open_1e6_s_most", "pan_zoom_ms_p50", "pan_zoom_ms_p99", "memory_mb", "leaked", "fixed_core_share", "update_ms"),
)


def _figures(rows: Sequence[Tree]) -> Tree:
    """The worse of every figure over the platforms, and the parts of the work where it is most."""
    worse = {key: min if key in LARGER_IS_BETTER else max for key in FIGURES}
    figures = {key: worse[key]((row[key] for row in rows if key in row), default=None) for key in FIGURES}
    paced = max((row for row in rows if row["part"] == "paced"), key=lambda row: row["update_ms"])
    return figures | {key: paced[key] for key in ("fixed_core_share_of", "update_ms_of")}


def _recorded(path: Path, blocks: int, block: int = 16) -> str:
    if not path.exists():
        _sessions.record(path, blocks, block, pace=False).writer.close()
    return str(path)


def _part(progress: Callable[..., None], platform: str, extra: dict[str, str], part: str, *arguments: str) -> Tree:
    """Run a part in a process of its own: its memory and its event loop are nobody else's."""
    progress(f"{platform}: {part}", None)
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as home:
        settings = {"ASRSCOPE_SESSIONS": f"{home}/sessions", "XDG_CONFIG_HOME": f"{home}/config"}
        child = subprocess.run(
            children.python("-m", "tests.bench._desk_window", part, *arguments),
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=children.environment({"QT_QPA_PLATFORM": platform, **settings, **extra}),
        )
    if child.returncode:
        raise RuntimeError(f"the part {part} of the bench ended with {child.returncode}: {child.stderr}")
    return {"part": part, "platform": platform, **json.loads(child.stdout.splitlines()[-1])}


@contextmanager
def _x_server() -> Iterator[dict[str, str]]:
    """An X server of our own without a screen, on a display number of its choice."""
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", SCREEN, "-nolisten", "tcp"],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            number = answer.readline().strip()
        yield {"DISPLAY": f":{number}"}
    finally:
        server.terminate()
        server.wait()
