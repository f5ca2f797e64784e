"""The parts of `bench desk` that run in a process of their own: `python -m tests.bench._desk_window PART …`.

Each prints one JSON object. Times are of the monotonic clock, which all processes of a machine share.
"""

import time

BEGUN = time.monotonic()

import gc  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from contextlib import ExitStack, contextmanager  # noqa: E402
from itertools import pairwise  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, Final  # noqa: E402
from unittest.mock import patch  # noqa: E402

import numpy as np  # noqa: E402
import psutil  # noqa: E402
from PySide6.QtCore import QEvent, QObject, QTimer  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from tests.bench._desk_watch import (  # noqa: E402
    READY_S,
    SETTLE_S,
    Loop,
    Paintings,
    Updates,
    chart_views,
    charts,
    qt,
    serve,
    show_default,
    until,
    window_live,
    window_shown,
)

CYCLES: Final = 50
STEPS: Final = 300
MB: Final = 1e6


def quantiles(values: list[float], name: str) -> dict[str, float]:
    """Median, p99 and the most of `values`, under `name`."""
    ordered = sorted(values)
    places = {"p50": len(ordered) // 2, "p99": min(len(ordered) - 1, int(0.99 * len(ordered))), "most": -1}
    return {f"{name}_{key}": round(ordered[i], 2) for key, i in places.items()} if ordered else {}


def live(seconds: str) -> dict[str, Any]:
    """The demo in the default layout."""
    window = window_live()
    updates, loop = Updates(window), Loop()
    start, process = time.monotonic(), time.process_time()
    serve(float(seconds))
    took, process = time.monotonic() - start, time.process_time() - process
    loop.stop()
    own = [gap for gap in loop.gaps if gap[1] > gap[0] / 2]
    found = {
        "seconds": round(took, 1),
        "still_live": window.playhead.live,
        "updates_per_s": round(len(updates.cursors) / took, 1),
        **quantiles([1e3 * (b[0] - a[0]) for a, b in pairwise(updates.cursors)], "update_ms"),
        "gui_core_share": round(process / took, 3),
        "gaps_over_50ms": round(60 / took * len(loop.gaps), 1),
        "own_gaps_over_50ms": round(60 / took * len(own), 1),
        "longest_gap_ms": round(1e3 * max((gap for gap, _ in loop.gaps), default=0.0), 1),
        "live_memory_mb": round(psutil.Process().memory_info().rss / MB, 1),
    }
    window.close()
    return found


FORCED_S: Final = (0.033, 0.05, 0.1, 0.2)  # seconds between two updates of a live run that is measured apart
TURN_S: Final = 3.0
REST_S: Final = 0.4  # of a turn that is not counted: what the turn before left over


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
            instead = _same_again(kind.reduce) if name == "reduce" else lambda *_, nothing=nothing: nothing
            undone.enter_context(patch.object(kind, name, instead))
        yield


def _same_again(reduce: Any) -> Any:
    """The model that a chart has already, in place of what `reduce` would make."""
    return lambda view, *now: reduce(view, *now) if view._model is None else view._model


PARTS: Final = ("painting", "charts", "breakdown", "texts")
"""What is left out, one at a time: painting of the plots, reduction and drawing, the breakdown, texts and figures."""


def paced(rounds: str) -> dict[str, Any]:
    """Processor time of a live run by seconds and by updates: turns of forced intervals, and of parts left out."""
    from app.model import pace

    window = window_live()
    updates = Updates(window)
    arms = [("", s) for s in FORCED_S] + [(part, s) for part in PARTS for s in (FORCED_S[0], FORCED_S[-1])]
    turns: dict[str, list[tuple[float, float]]] = {part: [] for part in ("", *PARTS)}
    for _ in range(int(rounds)):
        for part, interval in arms:
            with left_out(part), patch.object(pace.RedrawClock, "interval_s", interval):
                serve(REST_S)
                updates.cursors.clear()
                begin, process = time.monotonic(), time.process_time()
                serve(TURN_S)
                took, used = time.monotonic() - begin, time.process_time() - process
                turns[part].append((len(updates.cursors) / took, used / took))
    still_live = window.playhead.live
    window.close()
    fits = {part: _line(found) for part, found in turns.items()}
    fixed, update = fits.pop("")
    return {
        "still_live": still_live,
        "fixed_core_share": round(fixed, 3),
        "update_ms": round(update, 2),
        "fixed_core_share_of": {part: round(fixed - one, 3) for part, (one, _) in fits.items()},
        "update_ms_of": {part: round(update - one, 2) for part, (_, one) in fits.items()},
    }


def _line(turns: list[tuple[float, float]]) -> tuple[float, float]:
    """Share of a core without any update, and ms of each, of turns (updates per second, share of a core)."""
    slope, fixed = np.polyfit(*zip(*turns, strict=True), 1).tolist()
    return fixed, 1e3 * slope


def opens() -> dict[str, Any]:
    """Start Qt on this platform: where it cannot, it ends the process."""
    from app.application import application

    application()
    return {}


def start() -> dict[str, Any]:
    """From the start of the process to the first painting, the bars and the charts; as `asrscope` opens it."""
    begun = time.time() - psutil.Process().create_time() - (time.monotonic() - BEGUN)
    from app import gui
    from app.application import application
    from app.window.first_window import FirstWindow

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
                self.painting = False
                now = time.monotonic() - BEGUN + begun
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


def _opened(path: str) -> tuple[Any, Paintings, dict[str, float]]:
    """A window with a session opened until every chart is painted; its paintings, and the times."""
    from app.gui import freeze_objects

    window = window_shown()
    show_default(window)
    freeze_objects()  # as the application does at its start
    app = qt()
    serve(0.5)
    seen = Paintings(charts(window))
    seen.painted.clear()
    begin, cpu = time.monotonic(), time.process_time()
    window.open_session(Path(path))

    def drawn() -> bool:
        models = [view.model() for view in chart_views(window)]
        return all(model is not None for model in models) and len(seen.painted) == len(models)

    while not drawn() and time.monotonic() < begin + READY_S:
        app.processEvents()
    took = {"open_1e6_s": round(time.monotonic() - begin, 3), "open_1e6_cpu_s": round(time.process_time() - cpu, 3)}
    return window, seen, took


def opening(path: str) -> dict[str, Any]:
    """Open a million spans in a running window."""
    window, _, found = _opened(path)
    window.close()
    return found


def million(path: str) -> dict[str, Any]:
    """The same; pan and zoom."""
    window, seen, took = _opened(path)
    serve(SETTLE_S)  # words and stages of a long session come little by little
    steps = _steps(window, seen)
    spans = len(window.playhead.session.spans)
    window.close()
    return {"spans": spans, **took, **quantiles(steps, "pan_zoom_ms")}


def _steps(window: Any, seen: Paintings) -> list[float]:
    """Wall ms of each gesture, until every chart is painted again."""
    app, axis, count, wall = qt(), window.axis, len(charts(window)), []
    axis.fit()
    until(lambda: True, 1)
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


def hour(path: str) -> dict[str, Any]:
    """Resident memory of the window with an hour open, drawn and counted."""
    from tests.bench._rounds import peak_bytes  # not before: start-up is measured here as well

    window = window_shown()
    window.show_desk()
    serve(0.5)
    window.open_session(Path(path))
    serve(8.0)
    window.axis.zoom(0.1, 100.0)
    serve(0.5)
    window.axis.fit()
    serve(0.5)
    resident = psutil.Process().memory_info().rss
    found = {"memory_mb": round(resident / MB, 1), "peak_memory_mb": round(peak_bytes() / MB, 1)}
    window.close()
    return found


def cycles(path: str) -> dict[str, Any]:
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
        window = window_shown()
        opened(window)
        gone(window)

    first = window_shown()
    first.show_desk()
    serve(0.2)
    found = {"sessions": _left(session)}
    gone(first)
    found["windows"] = _left(whole_window)
    return {"cycles": CYCLES, "leaked": sum(max(0, one["objects"]) for one in found.values()), **found}


def _left(cycle: Any) -> dict[str, Any]:
    for _ in range(3):  # caches fill
        cycle()
    before, files = _counts(), psutil.Process().num_fds()
    for _ in range(CYCLES):
        cycle()
    grown = {name: after - before.get(name, 0) for name, after in _counts().items()}
    # Less than one in two cycles is a cache, or replaced.
    kept = {name: more for name, more in grown.items() if more >= CYCLES // 2}
    more_files = max(0, psutil.Process().num_fds() - files)
    kinds = dict(sorted(kept.items(), key=lambda item: -item[1])[:12])
    return {"objects": sum(kept.values()) + more_files, "kinds": kinds, "files": more_files}


def _counts() -> dict[str, int]:
    """Objects of every kind that the collector knows, and threads."""
    from PySide6.QtCore import QCoreApplication

    for _ in range(3):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.processEvents()
        gc.collect()
    found: dict[str, int] = {"threads": threading.active_count()}
    found["widgets"] = len(QApplication.allWidgets())
    for one in gc.get_objects():
        name = f"{type(one).__module__}.{type(one).__qualname__}"
        found[name] = found.get(name, 0) + 1
    return found


def soak() -> dict[str, Any]:
    """The looping demo in the default layout, until SIGINT."""
    from app.gui import freeze_objects
    from profiler.process import signals

    window = window_shown()
    show_default(window)
    window.runs.demo("demo")
    freeze_objects()  # as the application does at its start
    over: list[bool] = []
    with signals.stopping(lambda: over.append(True)):
        while not over:
            serve(SETTLE_S)
    window.close()
    return {}


def main() -> int:
    """Run one part and print its figures."""
    part, *arguments = sys.argv[1:]
    parts = (live, paced, opens, start, opening, million, hour, cycles, soak)
    found = {one.__name__: one for one in parts}
    print(json.dumps(found[part](*arguments)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
