"""A figure that is shown in several places is the same in all of them, and what should add up does.

FIGURES is the table: for each figure the places that show it. The first place is what the others are held against;
text is held to the digits that it prints. A new place is one line.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import tangled_session
from PySide6.QtCore import QCoreApplication

from app.cli import _report, compare
from app.model import latency
from app.style.theme import CATEGORY_TITLES
from app.window.main_window import MainWindow
from pipelines import config as settings
from pipelines.audio import word_errors as wer
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from profiler.analysis import whatif
from profiler.analysis.breakdown import breakdown
from profiler.analysis.track import CATEGORIES
from profiler.export import chrome_trace, speedscope, table
from profiler.session.reader import Session
from profiler.spans import TILING

OLD = Path(__file__).parents[1] / "data" / "sessions" / "v1.asrs"
SMALL = {"graph.vocabulary": 1000, "graph.bigrams": 50_000, "search.beam": 9.0}
RUNS: dict[str, dict[str, Any]] = {
    "ptm": {},
    "continuous": {"model": "continuous", "block": 1, "gmm.senones": "asked"},
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
        """Whether `value` could have been printed so."""
        digits = len(self.text.partition(".")[2])
        apart = abs(
            float(self.text.replace("\u202f", "").replace("\u2009", "")) * self.unit - value
        )
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
        tree: dict[str, Any] = json.loads(json.dumps(_report.report(self.session)))
        return tree

    @cached_property
    def page(self) -> str:
        return _report.as_text(self.json)

    @cached_property
    def csv(self) -> list[dict[str, str]]:
        table.write(self.session, self.folder / "t.csv")
        with (self.folder / "t.csv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    @cached_property
    def chrome(self) -> dict[str, Any]:
        chrome_trace.write(self.session, self.folder / "t.json")
        tree: dict[str, Any] = json.loads((self.folder / "t.json").read_text(encoding="utf-8"))
        return tree

    @cached_property
    def speedscope(self) -> dict[str, Any]:
        speedscope.write(self.session, self.folder / "t.speedscope.json")
        text = (self.folder / "t.speedscope.json").read_text(encoding="utf-8")
        tree: dict[str, Any] = json.loads(text)
        return tree

    @property
    def view(self) -> dict[str, Any]:
        return self.window.desk.views

    @cached_property
    def track(self) -> Any:
        return self.window.playhead.track

    @property
    def frames(self) -> int:
        return int(self.track.n_frames)

    def found(self, pattern: str, text: str) -> re.Match[str]:
        """The one place in `text` that matches."""
        match = re.search(pattern, text)
        assert match, (pattern, text)
        return match

    def of_page(self, pattern: str, unit: float = 1.0) -> Value:
        """The number that a pattern finds on the page of `show`."""
        text = self.found(pattern, self.page)[1]
        return None if text == "\u2013" else Shown(text, unit)

    def of_status(self, pattern: str, unit: float = 1.0) -> Value:
        """The number that a pattern finds in the status line; 0 where the line leaves out what is not."""
        match = re.search(pattern, self.window.status.cost.full)
        return Shown(match[1], unit) if match else 0.0


def printed(text: str, unit: float = 1.0) -> Value:
    """A printed figure; None for a dash."""
    return None if text == "\u2013" else Shown(text.split(maxsplit=1)[0], unit)


def stages_of_page(o: Opened, column: int, unit: float = 1.0) -> Values:
    """A column of the stages as `show` prints them: 0 time, 1 share, 2 calls."""
    pattern = r"^(\S.*?) +([\d.]+) s +([\d.]+%|\u2013) +(\d+)  .*\u00b7"
    found = re.findall(pattern, o.page, re.MULTILINE)
    values = {}
    for (_, *figures), row in zip(found, o.json["stages"], strict=True):
        text = figures[column].rstrip("%")
        values[f"{row['name']}/{row['lane']}"] = None if text == "\u2013" else Shown(text, unit)
    return values


def stages_of_csv(o: Opened, column: str, unit: float = 1.0) -> dict[str, Value]:
    """A column of the table; blank is None."""
    return {
        f"{row['stage']}/{row['lane']}": float(row[column]) * unit if row[column] else None
        for row in o.csv
        if row["stage"] != "overhead"
    }


def stages_of_json(o: Opened, key: str) -> dict[str, Value]:
    return {f"{row['name']}/{row['lane']}": row[key] for row in o.json["stages"]}


def stages_of_window(o: Opened, column: int, unit: float) -> dict[str, Value]:
    """A column of the breakdown's table: 1 ms per frame, 2 share; stages come after the categories."""
    lanes = {(line.name, line.ms): line.lane for line in o.view["breakdown"]._stages}
    values: dict[str, Value] = {}
    for row, (name, ms) in zip(
        o.view["breakdown"].table()[1][len(CATEGORIES) :], lanes, strict=True
    ):
        assert row[0] == name
        values[f"{name}/{lanes[name, ms]}"] = printed(str(row[column]), unit)
    return values


def counting(values: Mapping[str, float], o: Opened) -> Values:
    """Only stages all of whose spans count: not those of which some name frames that were never decoded."""
    apart = {"frontend.mfcc", "search.emit"} if o.json["state"] != "closed" else ()
    rows = stages_of_json(o, "time_s")
    return {k: v for k, v in values.items() if k in rows and k.partition("/")[0] not in apart}


def spans_of_chrome(o: Opened) -> dict[str, float]:
    """Time of the spans of each stage, s; of the decode lane only what lies in a tile, and the tiles themselves."""
    lanes = {chrome_trace.FIRST_TID + lane.id: lane for lane in o.session.lanes.values()}
    found: dict[str, float] = {}
    end = 0.0
    for event in o.chrome["traceEvents"]:
        if event["ph"] != "X":
            continue
        lane = lanes[event["tid"]]
        if event["cat"] in TILING:
            end = event["ts"] + event["dur"]
        elif lane.decode and event["ts"] >= end:
            continue  # before or between the tiles
        key = f"{event['cat'] if event['cat'] in TILING else event['name']}/{lane.name}"
        found[key] = found.get(key, 0.0) + event["dur"] * 1e-6
    return found


def spans_of_speedscope(o: Opened) -> dict[str, float]:
    """Time of the spans of each stage, s; of the decode lane only what lies in a tile."""
    names = [frame["name"] for frame in o.speedscope["shared"]["frames"]]
    tiles = {stage.name for stage in o.session.stages.values() if stage.group in TILING}
    decode = {lane.name for lane in o.session.lanes.values() if lane.decode}
    found: dict[str, float] = {}
    for profile in o.speedscope["profiles"]:
        opened: list[tuple[str, int]] = []
        for event in profile["events"]:
            if event["type"] == "O":
                opened.append((names[event["frame"]], event["at"]))
                continue
            name, at = opened.pop()
            if profile["name"] not in decode or (opened and opened[0][0] in tiles):
                key = f"{name}/{profile['name']}"
                found[key] = found.get(key, 0.0) + (event["at"] - at) * 1e-9
    return found


def categories(o: Opened, figure: Callable[[str], Value]) -> Values:
    return {name: figure(name) for name in CATEGORIES}


def category_of_window(o: Opened, column: int, unit: float) -> Values:
    """A column of the categories in the breakdown's table."""
    rows = {row[0]: row for row in o.view["breakdown"].table()[1][: len(CATEGORIES)]}
    return categories(o, lambda name: printed(str(rows[CATEGORY_TITLES[name]][column]), unit))


def category_of_page(o: Opened, group: int, unit: float = 1.0) -> Values:
    pattern = r"^{} +([\d.]+) s +([\d.]+)%$"
    found = {n: re.search(pattern.format(n), o.page, re.MULTILINE) for n in CATEGORIES}
    return categories(o, lambda name: Shown(found[name][group], unit))  # type: ignore[index]


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
    found = {
        str(number): wer.scored(row["reference"], row["hypothesis"] or "")
        for number, row in enumerate(o.json["utterances"], 1)
    }
    return {key: getattr(found[key], part) for key, value in known.items() if value is not None}


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
    match = re.search(r"(\d+) errors in (\d+) words", tip)
    return dict(zip(("errors", "words"), map(int, match.groups()), strict=True)) if match else {}


def wer_of_page(o: Opened) -> Values:
    match = re.search(r"^WER ([\d.]+)%: (\d+) errors in (\d+) words", o.page, re.MULTILINE)
    return {"errors": int(match[2]), "words": int(match[3])} if match else {}


def cost_by_hand(o: Opened) -> float | None:
    """Every span of every lane, recorded or lost, at what a span cost; with the counters where they were read."""
    told = o.session.meta.get("recorder") or {}
    lanes = o.session.lanes.values()
    if "ns_per_span" not in told:
        return None
    ns = sum((lane.recorded + lane.dropped) * told["ns_per_span"] for lane in lanes)
    reading = told.get("ns_per_counted_span") or 0.0
    ns += sum((lane.recorded + lane.dropped) * reading for lane in lanes if lane.decode)
    return float(ns / 1e9 / o.json["wall_s"])


def audio_by_hand(o: Opened) -> float:
    """Of every utterance the part of its length that was decoded."""
    return sum(
        u.audio_s * min(max(o.frames - u.first_frame, 0), u.n_frames) / u.n_frames
        for u in o.session.utterances
    )


def compared(o: Opened) -> dict[str, Any]:
    """The session beside itself, where every utterance was decoded to its end."""
    if not all(u.done for u in o.session.utterances):
        return {}
    return compare.report(o.session, Session.open(o.session.path))


def of_run(o: Opened, key: str) -> Values:
    """A figure of the report that the run itself printed."""
    return {} if o.run_report is None else {"": o.run_report[key]}


def latency_of_window(o: Opened) -> Values:
    """Beside the block, where the settings are those of the session."""
    note = o.window.desk.form.fields[latency.BLOCK_KEY].note.text()
    match = re.search(r"([\d.]+) ms scoring", note)
    return {"": Shown(match[1], 1e-3)} if match and o.json["machine"] else {}


Reader = Callable[[Opened], Any]
MS = 1e-3
FIGURES: dict[str, dict[str, Reader]] = {
    "rtf": {
        "show --json": lambda o: o.json["rtf"],
        "by hand": lambda o: o.json["wall_s"] / audio_by_hand(o),
        "run --json": lambda o: of_run(o, "rtf"),
        "show": lambda o: o.of_page(r"RTF (\S+)"),
        "top bar": lambda o: printed(o.window.top.rtf.value),
        "top bar, tool tip": lambda o: Shown(
            o.found(r"all that is shown: ([\d.]+)", o.window.top.rtf.toolTip())[1]
        ),
        "breakdown": lambda o: o.view["breakdown"].model().rtf,
        "breakdown, sum": lambda o: Shown(
            o.found(
                r"RTF ([\d.]+)",
                o.view["breakdown"].bars.sum_text(o.view["breakdown"].model()),
            )[1]
        ),
        "breakdown, sentence": lambda o: Shown(
            o.found(r"RTF ([\d.]+)", o.view["breakdown"].summary())[1]
        ),
        "cost": lambda o: o.view["cost"].model().rtf,
        "cost, sentence": lambda o: Shown(o.found(r"RTF ([\d.]+)", o.view["cost"].summary())[1]),
        "whatif": lambda o: whatif.unchanged(breakdown(o.session)).rtf,
        "chrome trace": lambda o: o.chrome["otherData"]["rtf"],
        "compare": lambda o: (
            {"": c["overall"]["rtf_a"]} if (c := compared(o)) and c["repeats"] == 1 else {}
        ),
    },
    "audio, s": {
        "show --json": lambda o: o.json["audio_s"],
        "by hand": audio_by_hand,
        "run --json": lambda o: of_run(o, "audio_s"),
        "show": lambda o: o.of_page(r"^([\d.]+) s of audio"),
        "cost, note": lambda o: o.view["cost"].model().audio_s,
        "transport": lambda o: Shown(
            o.found(r"([\d.]+) s of audio", o.window.desk.transport.note.full)[1]
        ),
        "chrome trace": lambda o: o.chrome["otherData"]["audio_s"],
        "compare": lambda o: {"": c["audio_s"]} if (c := compared(o)) else {},
    },
    "wall, s": {
        "show --json": lambda o: o.json["wall_s"],
        "run --json": lambda o: of_run(o, "wall_s"),
        "show": lambda o: o.of_page(r"audio in ([\d.]+) s"),
        "sum of the categories": lambda o: sum(
            v for k, v in o.json["categories"].items() if k != "hidden_s"
        ),
        "sum of the table": lambda o: Shown(
            str(sum(int(row["time_ns"]) for row in o.csv if row["share"])), 1e-9
        ),
        "frames of the window": lambda o: float(o.track.wall_ns.sum()) * 1e-9,
        "breakdown": lambda o: o.view["breakdown"].model().wall_ms * o.frames * MS,
        "breakdown, sum": lambda o: o.view["breakdown"].model().sum_ms * o.frames * MS,
        "cost": lambda o: o.view["cost"].model().mean_total_ms * o.frames * MS,
        "whatif": lambda o: whatif.unchanged(breakdown(o.session)).wall_ns * 1e-9,
        "chrome trace": lambda o: o.chrome["otherData"]["wall_s"],
        "chrome trace, tiles": lambda o: (
            {"": sum(v for k, v in spans_of_chrome(o).items() if k.partition("/")[0] in TILING)}
            if o.json["state"] == "closed"
            else {}
        ),
    },
    "set-up, s": {
        "show --json": lambda o: o.json["setup_s"],
        "run --json": lambda o: of_run(o, "setup_s"),
        "show": lambda o: o.of_page(r"set-up ([\d.]+) s"),
        "breakdown of all frames": lambda o: (
            breakdown(o.session, 0, o.frames, o.track).setup_ns * 1e-9
        ),
        "chrome trace": lambda o: o.chrome["otherData"]["setup_s"],
    },
    "idle, s": {
        "show --json": lambda o: o.json["idle_s"],
        "show": lambda o: o.of_page(r"waiting ([\d.]+) s"),
        "breakdown of all frames": lambda o: (
            breakdown(o.session, 0, o.frames, o.track).idle_ns * 1e-9
        ),
        "chrome trace": lambda o: o.chrome["otherData"]["idle_s"],
    },
    "word errors": {
        "utterances of show --json": wer_by_hand,
        "show --json": lambda o: {"errors": o.json["wer_errors"], "words": o.json["wer_words"]},
        "show": wer_of_page,
        "top bar": wer_of_top,
        "compare": lambda o: (
            {"errors": c["wer_errors"]["a"], "words": c["wer_words"]["a"]}
            if (c := compared(o)) and c["wer"]["a"] is not None
            else {}
        ),
    },
    "wer": {
        "show --json": lambda o: o.json["wer"],
        "run --json": lambda o: of_run(o, "wer"),
        "show": lambda o: o.of_page(r"WER ([\d.]+)%", 0.01) if o.json["wer"] is not None else None,
        "top bar": lambda o: printed(o.window.top.wer.value, 0.01),
    },
    "errors of each utterance": {
        "show --json": lambda o: json_words(o, "wer_errors"),
        "words view": lambda o: window_words(o, "errors"),
        "scored again": lambda o: counted_again(o, "errors"),
        "words marked": marked,
    },
    "words of each utterance": {
        "show --json": lambda o: json_words(o, "wer_words"),
        "words view": lambda o: window_words(o, "words"),
        "scored again": lambda o: counted_again(o, "reference_words"),
    },
    "categories, s": {
        "show --json": lambda o: categories(o, lambda name: o.json["categories"][f"{name}_s"]),
        "show": lambda o: category_of_page(o, 1),
        "breakdown": lambda o: category_of_window(o, 1, o.frames * MS),
        "cost": lambda o: categories(
            o,
            lambda name: o.view["cost"].model().shares[CATEGORIES.index(name)] * o.json["wall_s"],
        ),
        "chrome trace": lambda o: categories(
            o, lambda name: o.chrome["otherData"]["categories"][f"{name}_s"]
        ),
    },
    "shares of the categories": {
        "show --json": lambda o: categories(
            o, lambda name: o.json["categories"][f"{name}_s"] / o.json["wall_s"]
        ),
        "show": lambda o: category_of_page(o, 2, 0.01),
        "breakdown": lambda o: category_of_window(o, 2, 0.01),
    },
    "overhead, s": {
        "show --json": lambda o: o.json["categories"]["overhead_s"],
        "table": lambda o: (
            o.json["wall_s"]
            * sum(
                float(row["share"]) for row in o.csv if row["group"] == "overhead" and row["share"]
            )
        ),
    },
    "time of each stage, s": {
        "show --json": lambda o: stages_of_json(o, "time_s"),
        "show": lambda o: stages_of_page(o, 0),
        "table": lambda o: stages_of_csv(o, "time_ns", 1e-9),
        "breakdown": lambda o: stages_of_window(o, 1, o.frames * MS),
        "chrome trace": lambda o: counting(spans_of_chrome(o), o),
        "speedscope": lambda o: counting(spans_of_speedscope(o), o),
    },
    "share of each stage": {
        "show --json": lambda o: stages_of_json(o, "share"),
        "show": lambda o: stages_of_page(o, 1, 0.01),
        "table": lambda o: stages_of_csv(o, "share"),
        "breakdown": lambda o: stages_of_window(o, 2, 0.01),
    },
    "calls of each stage": {
        "show --json": lambda o: stages_of_json(o, "calls"),
        "show": lambda o: stages_of_page(o, 2),
        "table": lambda o: stages_of_csv(o, "calls"),
    },
    **{
        f"{key} of each stage": {
            "show --json": lambda o, key=key: stages_of_json(o, key),
            "table": lambda o, key=key: stages_of_csv(o, key),
        }
        for key in ("flops", "bytes_min", "bytes_max")
    },
    "work of each stage": {
        "show --json": lambda o: {
            f"{row['name']}/{row['lane']}/{name}": float(f"{count:.0f}")
            for row in o.json["stages"]
            for name, count in row["work"].items()
            if name != "frames"
        },
        "table": lambda o: {
            f"{row['stage']}/{row['lane']}/{pair.rpartition('=')[0]}": float(
                pair.rpartition("=")[2]
            )
            for row in o.csv
            for pair in re.findall(r"\S[^=]*=\d+", row["work"])
        },
    },
    "recorder: share of the run": {
        "show --json": lambda o: o.json["recorder"]["perturbation"],
        "by hand": cost_by_hand,
        "show": lambda o: o.of_page(r"([\d.]+|\u2013)%? of the run$", 0.01),
        "status line": lambda o: o.of_status(r"recorder ([\d.]+) % of the run", 0.01),
        "chrome trace": lambda o: o.chrome["otherData"]["recorder"]["perturbation"],
        "spans at their price": lambda o: (
            o.json["recorder"]["ns_per_span"]
            * (o.json["recorder"]["spans"] + o.json["recorder"]["dropped"])
            / 1e9
            / o.json["wall_s"]
        ),
    },
    "recorder: ns per span": {
        "show --json": lambda o: o.json["recorder"]["ns_per_span"],
        "show": lambda o: o.of_page(r"spans at (\d+) ns"),
        "status line": lambda o: o.of_status(r"(\d+) ns per span"),
    },
    "recorder: spans": {
        "show --json": lambda o: o.json["recorder"]["spans"],
        "show": lambda o: o.of_page(r"recorder: (\d+) spans"),
        "status line": lambda o: o.of_status("([\\d\u2009\u202f]+) spans"),
        "spans read": lambda o: len(o.session.spans),
        "chrome trace": lambda o: sum(e["ph"] == "X" for e in o.chrome["traceEvents"]),
    },
    **{
        f"losses: {key}": {
            "show --json": lambda o, key=key: o.json["recorder"][key],
            "show": lambda o, words=words: (
                int(m[1]) if (m := re.search(rf"(\d+) {words}", o.page)) else 0
            ),
            "status line": lambda o, words=words: o.of_status(rf"(\d+) {words}"),
            "chrome trace": lambda o, key=key: o.chrome["otherData"]["recorder"][key],
        }
        for key, words in (
            ("dropped", "dropped"),
            ("misplaced", "misplaced"),
            ("missed", "counter readings missed"),
        )
    },
    "drift, largest": {
        "show --json": lambda o: (
            {"": max(map(abs, o.json["drift"].values()))} if o.json["drift"] else {}
        ),
        "status line": lambda o: (
            {"": Shown(m[1], 0.01)}
            if (m := re.search(r"drifted by up to (\d+) %", o.window.status.machine.full))
            else {}
        ),
    },
    "scoring of a block, s": {
        "show --json": lambda o: (o.json["latency"] or {"score_s": None})["score_s"],
        "window": latency_of_window,
    },
}


def values_of(found: Any) -> Values:
    return found if isinstance(found, Mapping) else {"": found}


def same(wanted: Value, value: Value) -> bool:
    if value is None or wanted is None:
        return value is wanted
    if isinstance(value, Shown):
        return value.stands_for(float(wanted))  # type: ignore[arg-type]
    return float(value) == pytest.approx(float(wanted), rel=1e-9, abs=1e-15)  # type: ignore[arg-type]


def check(figure: str, opened: Opened) -> list[str]:
    """Every place that does not show what the first one does."""
    places = FIGURES[figure]
    (first, reader), *others = places.items()
    wanted = values_of(reader(opened))
    wrong = []
    for place, reader in others:
        for key, value in values_of(reader(opened)).items():
            if key not in wanted:
                wrong.append(f"{figure} {key}: {place} has it, {first} does not")
            elif not same(wanted[key], value):
                wrong.append(f"{figure} {key}: {wanted[key]} in {first}, {value} in {place}")
    return wrong


def recorded(folder: Path, speech: Path, values: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """A real run over some of the bundled voices, and the report that it printed."""
    said = folder / "said.tsv"
    lines = ["file\ttranscript", *(f"{speech / name}.flac\t{SAID[name]}" for name in SPEECH)]
    said.write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = tuple(str(speech / f"{name}.flac") for name in SPEECH)
    out = folder / "run.asrs"
    config = settings.assign(settings.Config(), SMALL | values)
    request = Request(config, "test", files, str(said), out)
    assert execute(request, Control(), lambda *_: None).state == "closed"
    with Session.open(out) as session:
        return out, _report.report(session)


@pytest.fixture(scope="module", params=[*RUNS, "tangled", "old"])
def session_file(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    bundled_speech: Path,
) -> tuple[Path, dict[str, Any] | None]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "tangled":
        return tangled_session.write(folder / "tangled.asrs"), None
    if request.param == "old":
        return Path(shutil.copy(OLD, folder / "v1.asrs")), None
    return recorded(folder, bundled_speech, RUNS[request.param])


@pytest.fixture
def opened(
    session_file: tuple[Path, dict[str, Any] | None],
    window: Callable[..., MainWindow],
    tmp_path: Path,
) -> Iterator[Opened]:
    path, told = session_file
    w = window()
    assert w.open_session(path)
    # Everything at once: without it the breakdown shows what came after the last change.
    w.playhead.axis.fit()
    w.playhead.axis.select(0.0, w.playhead.n_frames * 0.01)
    for _ in range(20):
        QCoreApplication.processEvents()
    w.desk.views["breakdown"].settle()
    with Session.open(path) as session:
        yield Opened(session, tmp_path, w, told)


def test_every_figure_is_the_same_in_all_places(opened: Opened) -> None:
    wrong = [line for figure in FIGURES for line in check(figure, opened)]
    assert not wrong, "\n".join(wrong)


def test_the_losses_of_the_tangled_session_are_those_that_were_made(tmp_path: Path) -> None:
    with Session.open(tangled_session.write(tmp_path / "t.asrs")) as session:
        told = _report.report(session)["recorder"]
    lost = {key: told[key] for key in ("dropped", "misplaced", "missed")}
    assert lost == {
        "dropped": tangled_session.DROPPED,
        "misplaced": tangled_session.MISPLACED,
        "missed": tangled_session.MISSED,
    }
