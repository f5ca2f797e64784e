"""Where the figures of a session are shown: how each is read from window, page, JSON, CSV and exports.

Every reader takes an `Opened` session; `test_one_figure` holds them against each other.
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from app.cli import _output, compare
from app.model import latency, report, report_lines
from app.style.theme import CATEGORY_TITLES
from app.window.main_window import MainWindow
from pipelines.audio import word_errors as wer
from profiler.analysis.breakdown import BETWEEN, breakdown
from profiler.analysis.categories import CATEGORIES, OTHER_PROGRAMS, OVERHEAD, THROTTLED
from profiler.export import chrome_trace, speedscope, table
from profiler.session.reader import Session
from profiler.spans import TILING

KEPT = {path.stem: path for path in sorted((Path(__file__).parents[1] / "data" / "sessions").glob("*.asrs"))}
"""Sessions as earlier versions of the program wrote them."""
SMALL = {"graph.vocabulary": 1000, "graph.bigrams": 50_000, "search.beam": 9.0}
RUNS: dict[str, dict[str, Any]] = {
    "ptm": {},
    "continuous": {"model": "continuous", "block": 1, "gmm.senones": "active"},
    "device": {"device": "torch-cpu", "placement.overlapped": True},
}
SPEECH = ("08-kal16-short", "01-slt-morning")
SAID = {
    "08-kal16-short": "\u2018Yes\u2019 \u2013 of-course!",
    "01-slt-morning": "The first-train leaves the station (at seven)... and most-of the PEOPLE on it are half asleep",
}
"""What was said, as a person might write it down."""


@dataclass(frozen=True)
class Shown:
    """A number as printed: it stands for all that its digits may have been rounded from, times `unit`."""

    text: str
    unit: float = 1.0

    def stands_for(self, value: float) -> bool:
        """Whether `value` could have been printed so; "<0.001" are those that would round to nothing."""
        if self.text.startswith("<"):
            return 0 < value < float(self.text[1:]) / 2 * self.unit
        digits = len(self.text.partition(".")[2])
        apart = abs(float(self.text.replace("\u202f", "").replace("\u2009", "")) * self.unit - value)
        return apart <= self.unit * 0.5000001 * 10**-digits + 1e-12 * abs(value)


Value = float | Shown | None
Values = Mapping[str, Value]


@dataclass
class Opened:
    """One session, in every place."""

    session: Session
    folder: Path
    window: MainWindow
    run_report: dict[str, Any] | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def json(self) -> dict[str, Any]:
        return json.loads(json.dumps(report.report(self.session)))

    @cached_property
    def page(self) -> str:
        return _output.text(report_lines.document(self.json))

    @cached_property
    def csv(self) -> list[dict[str, str]]:
        table.write(self.session, self.folder / "t.csv")
        with (self.folder / "t.csv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def _exported(self, export: Any) -> Any:
        export.write(self.session, self.folder / "t.json")
        return json.loads((self.folder / "t.json").read_text(encoding="utf-8"))

    @cached_property
    def chrome(self) -> dict[str, Any]:
        return self._exported(chrome_trace)

    @cached_property
    def speedscope(self) -> dict[str, Any]:
        return self._exported(speedscope)

    @property
    def view(self) -> dict[str, Any]:
        return self.window.desk.views

    @property
    def desk(self) -> Any:
        """The figures of the window."""
        return self.window.playhead.snapshot().desk

    @cached_property
    def track(self) -> Any:
        return self.window.playhead.track

    @property
    def frames(self) -> int:
        return int(self.track.n_frames)

    def match(self, pattern: str, text: str) -> re.Match[str]:
        """Return the first match in `text`; fails without one."""
        match = re.search(pattern, text)
        assert match, (pattern, text)
        return match

    def of_page(self, pattern: str, unit: float = 1.0) -> Value:
        """The number that a pattern finds on the page of `show`."""
        return printed(self.match(pattern, self.page)[1], unit)

    def of_status(self, pattern: str, unit: float = 1.0) -> Value:
        """The number that a pattern finds in the status line; 0 where the line leaves out what is not."""
        match = re.search(pattern, self.window.status.cost.full)
        return Shown(match[1], unit) if match else 0.0


def _own(o: Opened) -> dict[tuple[str, str, str], float]:
    """Seconds that each stage (name, group, lane) took without other programs, and what lies between them."""
    whole = breakdown(o.session, 0, o.frames, o.track)
    overhead = whole.overhead()
    found = {(BETWEEN, OVERHEAD, ""): overhead[BETWEEN] * 1e-9}
    for row in whole.stages:
        on_device = row.share is None
        ns = overhead[row.name] if row.group == OVERHEAD and not on_device else row.own_ns
        found[row.name, "device" if on_device else row.group, row.lane] = ns * 1e-9
    return found


def own_s(o: Opened) -> float:
    """Time of the decode lane without other programs, s."""
    return sum(seconds for (_, group, _), seconds in _own(o).items() if group != "device")


def own_stages(o: Opened) -> Values:
    """The same by stage."""
    return {f"{name}/{lane}": seconds for (name, _, lane), seconds in _own(o).items() if lane}


def own_categories(o: Opened) -> dict[str, float]:
    """The same by category, and what other programs took."""
    whole = breakdown(o.session, 0, o.frames, o.track)
    found = {name: ns * 1e-9 for name, ns in whole.categories.items()}
    for group in ("search", "frontend", "transfer"):
        found[group] = sum(seconds for (_, of, _), seconds in _own(o).items() if of == group)
    found[OTHER_PROGRAMS] = max(whole.wall_ns * 1e-9 - own_s(o) - found[THROTTLED], 0.0)
    return found


def overhead_of_table(o: Opened) -> float:
    """The category as the table's rows make it, as a share of the wall time.

    Stages of overhead stand there with what they lost to other programs and to limits.
    """
    between = sum(float(row["share"] or 0.0) for row in o.csv if row["stage"] == "overhead")
    own = 0.0
    for row in o.csv:
        if row["group"] == "overhead" != row["stage"] and row["share"]:
            lost = sum(float(row[name] or 0.0) for name in ("other_programs_ns", "throttled_ns"))
            own += float(row["share"]) * (1.0 - lost / max(float(row["time_ns"]), 1.0))
    return between + own


def printed(text: str, unit: float = 1.0) -> Value:
    """A printed figure; None for a dash."""
    return None if text == "\u2013" else Shown(text.split(maxsplit=1)[0], unit)


def stages_of_page(o: Opened, column: int, unit: float = 1.0) -> Values:
    """A column of the stages as `show` prints them: 0 time, 1 share, 2 calls."""
    pattern = r"^(\S.*?) +(<?[\d.]+) s +(<?[\d.]+%|\u2013) +(\d+)  .*\u00b7"
    found = re.findall(pattern, o.page, re.MULTILINE)
    values = {}
    for (_, *figures), row in zip(found, o.json["stages"], strict=True):
        values[f"{row['name']}/{row['lane']}"] = printed(figures[column].rstrip("%"), unit)
    return values


def stages_of_csv(o: Opened, column: str, unit: float = 1.0) -> dict[str, Value]:
    """A column of the table; blank is None."""
    return {
        f"{row['stage']}/{row['lane']}": float(row[column]) * unit if row[column] else None
        for row in o.csv
        if row["stage"] not in ("overhead", "other_programs", "throttled")  # what lies between stages
    }


def stages_of_json(o: Opened, key: str) -> dict[str, Value]:
    return {f"{row['name']}/{row['lane']}": row[key] for row in o.json["stages"]}


def stages_of_window(o: Opened, column: int, unit: float) -> dict[str, Value]:
    """A column of the breakdown's table: 1 ms per frame, 2 share; stages come after the categories."""
    lines = o.view["breakdown"].tree.stages
    rows = o.view["breakdown"].table()[1][len(CATEGORIES) : len(CATEGORIES) + len(lines)]
    values: dict[str, Value] = {}
    for row, line in zip(rows, lines, strict=True):
        assert row[0] == line.name
        if line.lane:
            values[f"{line.name}/{line.lane}"] = printed(str(row[column]), unit)
    return values


def counting(values: Mapping[str, float], o: Opened) -> Values:
    """Only stages all of whose spans count: not those of which some name frames that were never decoded."""
    apart = {"frontend.mfcc", "search.emit"} if o.json["state"] != "closed" else ()
    rows = stages_of_json(o, "time_s")
    return {k: v for k, v in values.items() if k in rows and k.partition("/")[0] not in apart}


def spans_of_chrome(o: Opened) -> dict[str, float]:
    """Time of the spans of each stage, s; of the decode lane only what lies in a tile, and the tiles themselves."""
    lanes = {chrome_trace.FIRST_TID + lane.id: lane for lane in o.session.lanes.values()}
    found: dict[str, float] = defaultdict(float)
    end = 0.0
    for event in o.chrome["traceEvents"]:
        if event["ph"] != "X" or event["tid"] not in lanes:
            continue  # set-up, utterances and words have lanes of their own
        lane = lanes[event["tid"]]
        if event["cat"] in TILING:
            end = event["ts"] + event["dur"]
        elif lane.decode and event["ts"] >= end:
            continue  # before or between the tiles
        key = f"{event['cat'] if event['cat'] in TILING else event['name']}/{lane.name}"
        found[key] += event["dur"] * 1e-6
    return found


def spans_of_speedscope(o: Opened) -> dict[str, float]:
    """Time of the spans of each stage, s; of the decode lane only what lies in a tile."""
    names = [frame["name"] for frame in o.speedscope["shared"]["frames"]]
    tiles = {stage.name for stage in o.session.stages.values() if stage.group in TILING}
    decode = {lane.name for lane in o.session.lanes.values() if lane.decode}
    found: dict[str, float] = defaultdict(float)
    for profile in o.speedscope["profiles"]:
        opened: list[tuple[str, int]] = []
        for event in profile["events"]:
            if event["type"] == "O":
                opened.append((names[event["frame"]], event["at"]))
                continue
            name, at = opened.pop()
            if profile["name"] not in decode or (opened and opened[0][0] in tiles):
                found[f"{name}/{profile['name']}"] += (event["at"] - at) * 1e-9
    return found


def categories(o: Opened, figure: Callable[[str], Value]) -> Values:
    return {name: figure(name) for name in CATEGORIES}


def category_of_window(o: Opened, column: int, unit: float) -> Values:
    """A column of the categories in the breakdown's table."""
    rows = {row[0]: row for row in o.view["breakdown"].table()[1][: len(CATEGORIES)]}
    return categories(o, lambda name: printed(str(rows[CATEGORY_TITLES[name]][column]), unit))


def category_of_page(o: Opened, group: int, unit: float = 1.0) -> Values:
    pattern = r"^{} +(<?[\d.]+) s +(<?[\d.]+)%$"
    found = {n: re.search(pattern.format(CATEGORY_TITLES[n]), o.page, re.MULTILINE) for n in CATEGORIES}
    # What took no time is left out.
    return categories(o, lambda name: Shown(one[group], unit) if (one := found[name]) else 0.0)


def window_words(o: Opened, part: str) -> Values:
    """Errors or words of each utterance, as the words view has them; those under way are not there."""
    model = o.view["words"].model()
    return {
        str(spoken.number): None if spoken.count is None else getattr(spoken.count, part)
        for spoken in model.spoken
        if not spoken.partial
    }


def json_words(o: Opened, key: str) -> Values:
    return {
        str(number): row[key]
        for number, row in enumerate(o.json["utterances"], 1)
        if o.session.utterances[number - 1].done
    }


def counted_again(o: Opened, part: str) -> Values:
    """Every utterance that counts, scored once more."""
    known = json_words(o, "wer_errors")
    rows = {key: o.json["utterances"][int(key) - 1] for key, errors in known.items() if errors is not None}
    return {key: getattr(wer.scored(row["reference"], row["hypothesis"] or ""), part) for key, row in rows.items()}


def marked(o: Opened) -> Values:
    """Words that the view marks as wrong, of the utterances that count."""
    known = json_words(o, "wer_errors")
    return {
        str(spoken.number): len(spoken.wrong_s)
        for spoken in o.view["words"].model().spoken
        if known.get(str(spoken.number)) is not None
    }


def wer_by_hand(o: Opened) -> Values:
    """The totals from the utterances' own figures."""
    rows = [row for row in o.json["utterances"] if row["wer_errors"] is not None]
    errors, words = (sum(row[key] for row in rows) for key in ("wer_errors", "wer_words"))
    return {"errors": errors or (0 if words else None), "words": words or None}


def wer_of_top(o: Opened) -> Values:
    tip = o.window.top.wer.toolTip()
    match = re.search(r"(\d+) errors? in (\d+) words?", tip)
    return dict(zip(("errors", "words"), map(int, match.groups()), strict=True)) if match else {}


def wer_of_page(o: Opened) -> Values:
    match = re.search(r"^WER ([\d.]+)%: (\d+) errors? in (\d+) words?", o.page, re.MULTILINE)
    return {"errors": int(match[2]), "words": int(match[3])} if match else {}


def cost_by_hand(o: Opened) -> float | None:
    """Every span of every lane, recorded or lost, at what a span cost; with the counters where they were read.

    Tiles are recorded between the stages, and what a run does there for itself is all of it.
    """
    reported = o.session.meta.get("recorder") or {}
    lanes = o.session.lanes.values()
    if "ns_per_span" not in reported:
        return None
    reading = reported.get("ns_per_counted_span") or 0.0
    per_span = ((lane, reported["ns_per_span"] + (reading if lane.decode else 0.0)) for lane in lanes)
    ns = sum((lane.recorded + lane.dropped) * ns for lane, ns in per_span)
    events = o.session.meta.get("device_events") or {}
    ns += events.get("events", 0) * events.get("ns_per_event", 0.0) + events.get("recording_ns", 0)
    tiling = [stage.id for stage in o.session.stages.values() if stage.group in TILING]
    ns -= float(np.isin(o.session.spans["stage"], tiling).sum()) * reported["ns_per_span"]
    named = (row for row in o.json["stages"] if row["group"] == "overhead" and not row["name"].startswith("decode."))
    between_s = o.json["categories"]["overhead_s"] - sum(row["own_s"] for row in named)
    return float((ns / 1e9 + between_s) / o.json["wall_s"])


def audio_by_hand(o: Opened) -> float:
    """Of every utterance the part of its length that was decoded."""
    return sum(u.audio_s * min(max(o.frames - u.first_frame, 0), u.n_frames) / u.n_frames for u in o.session.utterances)


def compared(o: Opened) -> dict[str, Any]:
    """Compare the session with itself, where every utterance was decoded to its end."""
    if not all(u.done for u in o.session.utterances):
        return {}
    return compare.report(o.session, Session.open(o.session.path))


def of_run(o: Opened, key: str) -> Values:
    """A figure of the report that the run itself printed."""
    return {} if o.run_report is None else {"": o.run_report[key]}


def latency_of_window(o: Opened) -> Values:
    """The window's latency next to the block, for the settings of the session."""
    note = o.window.desk.form.fields[latency.BLOCK_KEY].note.full
    match = re.search(r"([\d.]+) ms scoring", note)
    return {"": Shown(match[1], 1e-3)} if match and o.json["machine"] else {}


Reader = Callable[[Opened], Any]
