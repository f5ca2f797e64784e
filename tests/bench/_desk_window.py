"""The parts of `bench desk` that run in a process of their own: `python -m tests.bench._desk_window PART …`.

Each returns the figures that are printed, as one JSON object.
"""

import gc
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import psutil
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication

from tests.bench import _desk_watch as watch
from tests.bench._desk_watch import serve

CYCLES: Final = 50
STEPS: Final = 300
MB: Final = 1e6
FORCED_S: Final = (0.033, 0.05, 0.1, 0.2)  # seconds between two updates of a live run that is measured apart
TURN_S: Final = 3.0
REST_S: Final = 0.4  # of a turn that is not counted: what the turn before left over
PARTS: Final = ("painting", "charts", "breakdown", "texts")
"""What is left out, one at a time: painting of the plots, reduction and drawing, the breakdown, texts and figures."""
Figures = dict[str, Any]


def quantiles(values: list[float], name: str) -> Figures:
    """Median, p99 and the most of `values`, under `name`."""
    ordered = sorted(values)
    places = {"p50": len(ordered) // 2, "p99": min(len(ordered) - 1, int(0.99 * len(ordered))), "most": -1}
    return {f"{name}_{key}": round(ordered[i], 2) for key, i in places.items()} if ordered else {}


def served(seconds: float) -> tuple[float, float]:
    """Serve events for a while: the seconds that it took, and those of the processor, all threads of this process."""
    begin, process = time.monotonic(), time.process_time()
    serve(seconds)
    return time.monotonic() - begin, time.process_time() - process


def live(seconds: str) -> Figures:
    window = watch.window_live()
    updates, loop = watch.Updates(window), watch.Loop()
    took, process = served(float(seconds))
    loop.timer.stop()
    found = {
        "seconds": round(took, 1),
        "still_live": window.playhead.live,
        "updates_per_s": round(len(updates.cursors) / took, 1),
        **quantiles([1e3 * (b[0] - a[0]) for a, b in pairwise(updates.cursors)], "update_ms"),
        "gui_core_share": round(process / took, 3),
        "gaps_over_50ms": round(60 / took * len(loop.gaps), 1),
        "own_gaps_over_50ms": round(60 / took * sum(own > gap / 2 for gap, own in loop.gaps), 1),
        "longest_gap_ms": round(1e3 * max((gap for gap, _ in loop.gaps), default=0.0), 1),
        "live_memory_mb": round(psutil.Process().memory_info().rss / MB, 1),
    }
    window.close()
    return found


@contextmanager
def left_out(part: str) -> Iterator[None]:
    """Do without a part of what the window does for each update or reading (PARTS); empty: with everything."""
    from app.charts.time_plot import TimePlot
    from app.views.breakdown import BreakdownView
    from app.views.chart import ChartView
    from app.views.view import View
    from app.window.bars.statusline import StatusLine
    from app.window.bars.topbar import TopBar
    from app.window.bars.transport import ScrubBar, Transport

    def same_again(reduce: Callable[..., Any]) -> Callable[..., Any]:
        """The model that a chart has already, in place of what `reduce` would make."""
        return lambda view, *now: reduce(view, *now) if view._model is None else view._model

    kinds = ChartView.__subclasses__()
    replaced: dict[str, list[tuple[type, str]]] = {
        "painting": [(TimePlot, "paintEvent")],
        "charts": [(kind, name) for kind in kinds for name in ("reduce", "show_model")],
        "breakdown": [(BreakdownView, "update_snapshot")],
        "texts": [
            *((Transport, "_fit"), (Transport, "_show_live"), (Transport, "_note"), (ScrubBar, "show_position")),
            *((TopBar, "show_desk"), (TopBar, "show_recording"), (StatusLine, "show_snapshot")),
            *((View, "_renew_texts"), *((kind, "show_texts") for kind in kinds)),
        ],
    }
    with ExitStack() as undone:
        for kind, name in replaced.get(part, ()):
            nothing = "" if name == "_note" else None
            instead = same_again(kind.reduce) if name == "reduce" else lambda *_, nothing=nothing: nothing
            undone.enter_context(patch.object(kind, name, instead))
        yield


def paced(rounds: str) -> Figures:
    """Processor time of a live run by seconds and by updates: turns of forced intervals, and of parts left out."""
    from app.model import pace

    window = watch.window_live()
    updates = watch.Updates(window)
    arms = [("", s) for s in FORCED_S] + [(part, s) for part in PARTS for s in (FORCED_S[0], FORCED_S[-1])]
    turns: dict[str, list[tuple[float, float]]] = {part: [] for part in ("", *PARTS)}
    for _ in range(int(rounds)):
        for part, interval in arms:
            with left_out(part), patch.object(pace.RedrawClock, "interval_s", interval):
                serve(REST_S)
                updates.cursors.clear()
                took, used = served(TURN_S)
                turns[part].append((len(updates.cursors) / took, used / took))
    # Of each line through (updates per second, share of a core): the share of an update, and that without any.
    fits = {part: np.polyfit(*zip(*found, strict=True), 1).tolist() for part, found in turns.items()}
    update, fixed = fits.pop("")
    found = {
        "still_live": window.playhead.live,
        "fixed_core_share": round(fixed, 3),
        "update_ms": round(1e3 * update, 2),
        "fixed_core_share_of": {part: round(fixed - without, 3) for part, (_, without) in fits.items()},
        "update_ms_of": {part: round(1e3 * (update - without), 2) for part, (without, _) in fits.items()},
    }
    window.close()
    return found


def opens() -> Figures:
    """Start Qt on this platform: where it cannot, it ends the process."""
    from app.application import application

    application()
    return {}


def start() -> Figures:
    """From the start of the process to the first painting, the bars and the charts; as `asrscope` opens it."""
    from app import gui
    from app.application import application
    from app.window.first_window import FirstWindow

    begun = psutil.Process().create_time()
    seen: dict[str, float] = {}
    app = application()

    class First(QObject):
        """The painting is over when the event loop takes the next thing that is no painting."""

        painting = whole = False

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            kind = event.type()
            if kind == QEvent.Type.Paint:
                if isinstance(watched, FirstWindow):
                    self.painting, self.whole = True, watched.is_complete
            elif self.painting and kind in (QEvent.Type.MetaCall, QEvent.Type.Timer):
                self.painting, now = False, time.time() - begun
                seen.setdefault("first_paint_s", now)
                if self.whole:
                    seen.setdefault("bars_paint_s", now)
                seen["last_paint_s"] = now
            return False

    first = First()
    app.installEventFilter(first)
    QTimer.singleShot(3000, app.closeAllWindows)
    gui.open_window(None, demo=False)
    return {key: round(value, 3) for key, value in seen.items()}


def million(path: str, gestures: str = "") -> Figures:
    """Open a million spans in a running window, until every chart is painted; then pan and zoom, if wanted."""
    window = watch.desk_shown()
    serve(0.5)
    seen = watch.Paintings(watch.charts(window))
    seen.painted.clear()
    begin, cpu = time.monotonic(), time.process_time()
    window.open_session(Path(path))

    def drawn() -> bool:
        models = [view.model() for view in watch.chart_views(window)]
        return None not in models and len(seen.painted) == len(models)

    while not drawn() and time.monotonic() < begin + watch.READY_S:
        watch.qt().processEvents()
    found = {"open_1e6_s": round(time.monotonic() - begin, 3), "open_1e6_cpu_s": round(time.process_time() - cpu, 3)}
    if gestures:
        serve(watch.SETTLE_S)  # words and stages of a long session come little by little
        steps = quantiles(_steps(window, seen), "pan_zoom_ms")
        found = {"spans": len(window.playhead.session.spans), **found, **steps}
    window.close()
    return found


def _steps(window: Any, seen: watch.Paintings) -> list[float]:
    """Wall ms of each gesture, until every chart is painted again."""
    app, axis, count, wall = watch.qt(), window.axis, len(watch.charts(window)), []
    axis.fit()
    for step in range(STEPS):
        app.processEvents()
        seen.painted.clear()
        before, begin = axis.visible, time.perf_counter()
        if step % 3 == 2:
            axis.pan(0.08 if step % 2 else -0.08)
        else:
            # In to a millionth of the session and out again, about a point that is nowhere special.
            inwards = (step // 90) % 2 == 0
            axis.zoom(0.8 if inwards else 1.25, before[0] + 0.37 * (before[1] - before[0]))
        if axis.visible == before:
            continue
        while len(seen.painted) < count and time.perf_counter() < begin + 1:
            app.processEvents()
        wall.append(1e3 * (time.perf_counter() - begin))
    return wall


def hour(path: str) -> Figures:
    """Resident memory of the window with an hour open, drawn and counted."""
    window = watch.window_shown()
    window.show_desk()
    serve(0.5)
    window.open_session(Path(path))
    serve(8.0)
    window.axis.zoom(0.1, 100.0)
    serve(0.5)
    window.axis.fit()
    serve(0.5)
    sizes = {"memory_mb": psutil.Process().memory_info().rss, "peak_memory_mb": watch.peak_bytes()}
    window.close()
    return {name: round(size / MB, 1) for name, size in sizes.items()}


def cycles(path: str) -> Figures:
    """Objects that sessions opened and closed, and windows made and closed, leave behind."""

    def opened(window: Any) -> None:
        window.open_session(Path(path))
        serve(0.01)

    def gone(window: Any) -> None:
        window.close()
        window.deleteLater()
        serve(0.01)

    def session() -> None:
        opened(first)
        first.playhead.close()
        serve(0.01)

    def whole_window() -> None:
        window = watch.window_shown()
        opened(window)
        gone(window)

    first = watch.window_shown()
    first.show_desk()
    serve(0.2)
    found = {"sessions": _left(session)}
    gone(first)
    found["windows"] = _left(whole_window)
    return {"cycles": CYCLES, "leaked": sum(max(0, one["objects"]) for one in found.values()), **found}


def _left(cycle: Callable[[], None]) -> Figures:
    for _ in range(3):  # caches fill
        cycle()
    before, files = _counts(), psutil.Process().num_fds()
    for _ in range(CYCLES):
        cycle()
    # Less than one in two cycles is a cache, or replaced.
    kept = Counter({name: more for name, n in _counts().items() if (more := n - before[name]) >= CYCLES // 2})
    more_files = max(0, psutil.Process().num_fds() - files)
    return {"objects": kept.total() + more_files, "kinds": dict(kept.most_common(12)), "files": more_files}


def _counts() -> Counter[str]:
    for _ in range(3):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.processEvents()
        gc.collect()
    found = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())
    return found + Counter(threads=threading.active_count(), widgets=len(QApplication.allWidgets()))


def soak() -> Figures:
    """The looping demo in the default layout, until SIGINT."""
    from profiler.process import signals

    window = watch.desk_shown()
    window.runs.demo("demo")
    over: list[bool] = []
    with signals.stopping(lambda: over.append(True)):
        while not over:
            serve(watch.SETTLE_S)
    window.close()
    return {}


if __name__ == "__main__":
    parts = {one.__name__: one for one in (live, paced, opens, start, million, hour, cycles, soak)}
    print(json.dumps(parts[sys.argv[1]](*sys.argv[2:])))
