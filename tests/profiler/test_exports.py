import csv
import json
import mimetypes
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiler_sessions import BLOCKS, fake_session, spans_of

from profiler import export
from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import PARTS
from profiler.costs import NUMPY_CALL, Cost, Linear
from profiler.export import _spans, chrome_trace, speedscope, table
from profiler.export._spans import RECOGNISED, SETUP, in_order, recognised
from profiler.files.outputs import OutputError
from profiler.session.model import Utterance, Utterances
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder, Stage
from tests.each import each


@pytest.fixture
def chrome(small: Path, tmp_path: Path) -> Any:
    with Session.open(small) as session:
        chrome_trace.write(session, tmp_path / "t.json")
    return json.loads((tmp_path / "t.json").read_text())


def test_chrome_events_are_complete_and_in_microseconds(chrome, small):
    spans = [e for e in chrome["traceEvents"] if e["ph"] == "X" and e["cat"] != "said"]
    before = chrome["otherData"]["setup"]
    assert before == {"before_s": {"setup.model": 0.005}, "spans": 1}
    with Session.open(small) as session:
        assert len(spans) + before["spans"] == len(session.spans)
        total = session.spans["duration_ns"].sum() - 5_000_000
        first = session.spans["start_ns"].min() + 5_000_000
        tiles = session.spans[session.spans["stage"] == 0]
    assert sum(e["dur"] for e in spans) == pytest.approx(total / 1000)
    by_name = sorted((e for e in spans if e["name"] == "decode.block"), key=lambda e: e["ts"])
    assert [e["ts"] for e in by_name] == pytest.approx(((tiles["start_ns"] - first) / 1000).tolist())
    assert by_name[0]["args"] == {"frame": 0, "frames": 4, "epoch": 0}
    emit = next(e for e in spans if e["name"] == "search.emit")
    assert (emit["cat"], emit["args"]["tokens"]) == ("search", 50)
    assert {e["tid"] for e in spans} == {1}
    nests(spans)


def test_chrome_names_lanes_and_carries_counters_and_markers(chrome):
    events = chrome["traceEvents"]
    names = {(e["name"], e["tid"]): e["args"] for e in events if e["ph"] == "M"}
    assert ("process_name", 0) in names
    order = {tid: args["sort_index"] for (name, tid), args in names.items() if "sort" in name}
    lanes = [names["thread_name", tid]["name"] for tid in sorted(order, key=order.__getitem__)]
    assert lanes == [RECOGNISED, "decode", SETUP]
    assert names["thread_name", 1] == {"name": "decode"}
    assert [e["args"]["value"] for e in events if e["ph"] == "C"] == list(map(float, range(BLOCKS)))
    (marker,) = (e for e in events if e["ph"] == "i")
    assert (marker["name"], marker["cat"], marker["s"]) == ("skip every second frame", "option", "p")


def nests(spans: list[dict[str, Any]]) -> None:
    stack: list[float] = []
    for event in spans:
        while stack and stack[-1] <= event["ts"] + 1e-6:
            stack.pop()
        end = event["ts"] + event["dur"]
        assert not stack or end <= stack[-1] + 2e-3
        stack.append(end)
    assert [e["ts"] for e in spans] == sorted(e["ts"] for e in spans)


def test_decoding_is_what_a_trace_shows_first(chrome, small, tmp_path):
    """Set-up took 5 ms of 6, in the session and in every file until now."""
    with Session.open(small) as session:
        speedscope.write(session, tmp_path / "s.json")
        blocks = session.spans[session.spans["stage"] == 0]
        decoded = (blocks["start_ns"] + blocks["duration_ns"]).max() - blocks["start_ns"].min()
    timed = [e for e in chrome["traceEvents"] if "ts" in e]
    assert min(e["ts"] for e in timed) == 0
    assert max(e["ts"] + e["dur"] for e in timed if e["ph"] == "X") <= decoded / 1000 * 1.2
    tree = json.loads((tmp_path / "s.json").read_text())
    assert [p["name"] for p in tree["profiles"]] == ["decode", RECOGNISED, SETUP]
    decode, recognised_, setup = tree["profiles"]
    assert decode["events"][0]["at"] == 0
    assert decode["endValue"] <= decoded * 1.2
    names = [frame["name"] for frame in tree["shared"]["frames"]]
    assert {names[f]: ns for f, ns in balanced(setup).items()} == {"setup.model": 5_000_000}
    assert not any("setup" in names[e["frame"]] for e in decode["events"])
    spoken = {e["name"]: e["dur"] * 1000 for e in timed if e.get("cat") == "said"}
    assert {names[f]: ns for f, ns in balanced(recognised_).items()} == pytest.approx(spoken, abs=2)


def test_utterances_and_words_are_spans(chrome, small):
    events = [e for e in chrome["traceEvents"] if e.get("cat") == "said"]
    assert [e["name"] for e in events] == ["one", "hello", "word"]
    utterance, hello, word = events
    assert (utterance["args"]["hypothesis"], utterance["args"]["reference"]) == ("hello word", "hello world")
    assert hello["args"] == {"first_frame": 2, "frames": 10}
    with Session.open(small) as session:
        blocks = session.spans[session.spans["stage"] == 0]
    starts = (blocks["start_ns"] - blocks["start_ns"].min()) / 1000
    ends = starts + blocks["duration_ns"] / 1000

    def second_of(frame: float) -> float:
        block, part = int(frame // 4), frame % 4 / 4
        return float(starts[block] + part * (ends[block] - starts[block]))

    assert (utterance["ts"], utterance["dur"]) == pytest.approx((starts[0], ends[-1]))
    assert (hello["ts"], hello["ts"] + hello["dur"]) == pytest.approx((second_of(2), ends[2]), abs=2e-3)
    assert (word["ts"], word["ts"] + word["dur"]) == pytest.approx((second_of(15), second_of(35)), abs=2e-3)
    nests(events)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30), st.lists(st.integers(0, 70), max_size=6)), max_size=6),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9), st.integers(0, 40)), max_size=9),
)
def test_whatever_a_session_says_was_recognised_nests(utterances, blocks):
    """A stranger's session may name frames that were never decoded, or twice."""
    spans = spans_of([(start, 3, 0, first, frames) for start, frames, first in blocks])
    session = fake_session(spans, [Stage(0, "decode.block", "decode")], {})
    session.utterances = Utterances(
        Utterance(
            number, f"u{number}", "", first, frames, frames / 100, None, None, tuple(("a", at, 3) for at in words),
            None, (), None, None, False, np.zeros((frames, 2), np.int8),
        )
        for number, (first, frames, words) in enumerate(utterances)
    )  # fmt: skip
    found = recognised(session)
    assert len(found.spans) == len(found.names) == len(found.details)
    written = speedscope.events(in_order(found.spans), 0, dict.fromkeys(range(len(found.names)), 0), "first_frame")
    balanced({"startValue": 0, "endValue": 1000, "events": [json.loads(e) for e in written]})


def balanced(profile: dict[str, Any]) -> dict[int, int]:
    """Check that opens and closes are a proper bracket in time and return total time per frame."""
    stack: list[tuple[int, int]] = []
    spent: dict[int, int] = {}
    at = profile["startValue"]
    for event in profile["events"]:
        assert event["at"] >= at
        at = event["at"]
        if event["type"] == "O":
            stack.append((event["frame"], at))
        else:
            frame, opened = stack.pop()
            assert frame == event["frame"]
            spent[frame] = spent.get(frame, 0) + at - opened
    assert not stack
    assert at <= profile["endValue"]
    return spent


SCHEMA = json.loads((Path(__file__).parents[1] / "data" / "speedscope" / "file-format-schema.json").read_text())
KINDS: dict[str, Any] = {"object": dict, "array": list, "string": str, "number": (int, float)}


def fault(value: Any, rule: dict[str, Any]) -> str | None:
    """Say what in `value` breaks a rule of JSON schema draft 7, as far as speedscope's schema uses it."""
    known = {"$ref", "$schema", "definitions", "title", "anyOf", "enum", "const", "type"}
    assert set(rule) <= known | {"required", "properties", "items", "default"}, rule
    if "$ref" in rule:
        return fault(value, SCHEMA["definitions"][rule["$ref"].removeprefix("#/definitions/")])
    if "anyOf" in rule:
        faults = [fault(value, choice) for choice in rule["anyOf"]]
        return None if None in faults else f"{value!r:.80}: {faults}"
    if value not in rule.get("enum", [value]) or value != rule.get("const", value):
        return f"{value!r:.80} is not as it must be"
    if "type" in rule and (isinstance(value, bool) or not isinstance(value, KINDS[rule["type"]])):
        return f"{value!r:.80} is no {rule['type']}"
    if isinstance(value, dict):
        if missing := [name for name in rule.get("required", ()) if name not in value]:
            return f"{missing} are missing"
        inside = [(value[k], r) for k, r in rule.get("properties", {}).items() if k in value]
    else:
        inside = [(item, rule["items"]) for item in value] if "items" in rule else []
    return next((found for item, r in inside if (found := fault(item, r))), None)


def test_speedscope_files_fit_the_schema(small, tmp_path):
    with Session.open(small) as session:
        speedscope.write(session, tmp_path / "s.speedscope.json")
    tree = json.loads((tmp_path / "s.speedscope.json").read_text())
    assert tree["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert len(tree["profiles"][0]["events"]) > BLOCKS
    assert fault(tree, SCHEMA) is None
    tree["profiles"][0]["unit"] = "parsecs"
    assert fault(tree, SCHEMA) is not None


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20), st.integers(1, 25))
def test_overlapping_spans_are_made_to_nest(pairs, piece):
    spans = spans_of([(start, length, 0, 0, 0) for start, length in pairs])
    before = spans.copy()
    with patch.object(_spans, "PIECE", piece):
        pieces = list(in_order(spans))
    assert np.array_equal(spans, before)
    assert all(len(p) == piece for p in pieces[:-1])
    ordered = np.concatenate([spans[:0], *pieces])
    assert ordered["start_ns"].tolist() == sorted(start for start, _ in pairs)
    assert (ordered["duration_ns"] >= 0).all()
    events = [json.loads(event) for event in speedscope.events(pieces, 0, {0: 0})]
    balanced({"startValue": 0, "endValue": 100, "events": events})


def written_table(session: Any, path: Path) -> list[dict[str, str]]:
    table.write(session, path)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_table_has_a_row_per_stage_and_blanks(small, tmp_path):
    with Session.open(small) as session:
        rows = written_table(session, tmp_path / "t.csv")
        parts = breakdown(session)
    assert [row["stage"] for row in rows] == [*(row.name for row in parts.stages), "overhead"]
    gaussians, emit, overhead = rows
    assert float(gaussians["time_ns"]) == parts.stages[0].time_ns
    assert float(gaussians["median_ns"]) == 10_000
    assert gaussians["verdict"] == "compute-bound"
    assert (emit["flops"], emit["bytes_min"], emit["verdict"]) == ("", "", "")
    assert sum(int(row["time_ns"]) for row in rows) == parts.wall_ns
    assert int(overhead["time_ns"]) == parts.categories["overhead"]
    assert (overhead["group"], overhead["lane"], overhead["calls"]) == ("overhead", "decode", "")
    assert emit["work"] == f"tokens={BLOCKS * 206} arcs={BLOCKS * 800} senones={BLOCKS * 120}"


def test_the_table_has_the_parts_of_stages_that_have_a_law(tmp_path):
    stages = [Stage(0, "decode", "decode"), Stage(1, "score.a", "scoring"), Stage(2, "score.b", "scoring")]
    spans = spans_of([(0, 40_000, 1, 0, 10), (40_000, 20_000, 2, 0, 10), (0, 60_000, 0, 0, 10)])
    # 10 µs of arithmetic and 20 calls of 500 ns, each at the best repeat a tenth less.
    law = Cost({"gemm": Linear(1e6)}, calls={NUMPY_CALL: Linear(20.0)})
    session = fake_session(spans, stages, {(1, 0): law})
    session.path = tmp_path / "a.asrs"
    a, b, _ = written_table(session, tmp_path / "t.csv")
    ns = {name: float(a[f"part_{name}_ns"]) for name in PARTS}
    assert (ns["arithmetic"], ns["calls"]) == pytest.approx((10_000 / 1.1, 9_000))
    assert float(a["part_calls_low_ns"]) <= 9_000 <= float(a["part_calls_high_ns"])
    assert ns["not_attributed"] == pytest.approx(31_000 - 10_000 / 1.1)
    assert sum(ns.values()) == pytest.approx(40_000)
    assert {b[f"part_{name}{end}_ns"] for name in PARTS for end in ("", "_low", "_high")} == {""}


@each("form", export.formats())
def test_every_format_writes_an_empty_session_and_says_where_it_cannot(form, tmp_path):
    SessionWriter(tmp_path / "s.asrs", Recorder(), {}).close()
    (tmp_path / "taken").mkdir()
    with Session.open(tmp_path / "s.asrs") as session:
        for target in (tmp_path / "missing" / "x", tmp_path / "taken"):
            with pytest.raises(OutputError, match=r"cannot be written there|a folder") as caught:
                form.write(session, target)
            assert str(target) in str(caught.value)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["s.asrs", "taken"]
        form.write(session, tmp_path / "out")
    if form.mime == "application/json":
        json.loads((tmp_path / "out").read_text())


def test_every_file_of_the_folder_is_a_format_of_its_own():
    files = {path.stem for path in Path(export.__path__[0]).glob("*.py") if path.stem[0] != "_"}
    found = export.formats()
    assert {form.write.__module__.rpartition(".")[2] for form in found} == files
    assert [form.place for form in found] == sorted({form.place for form in found})
    for name in ("name", "option", "title", "suffix"):
        assert len({getattr(form, name) for form in found}) == len(found), name
    assert all(mimetypes.MimeTypes().guess_type(f"a{form.suffix}")[0] == form.mime for form in found)
