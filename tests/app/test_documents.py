"""What verbs report: their documents, made of their JSON objects, and how a terminal shows them."""

import math
from argparse import Namespace
from typing import Any

import made_study
import msgspec
import pytest

from app.cli import _output, audit, capacity, compare, confirm, explain, sweep, whatif
from app.model.document import Document, Drawing, Notes, RatioRow, Ratios, Section, Table
from pipelines.labs.chart import Axis, Bars, Chart, Mark
from tests.each import each

EXPLAIN: dict[str, Any] = {
    "stage": "score.exp", "verdict": "undecided", "evidence": "C", "sentence": "Moves 9.4 MB per frame.",
    "us_per_frame": 21.6,
    "ways": [
        {"name": "in the run", "what": "the audio decoded", "us_per_frame": 20.0, "low": 19.0, "high": 22.0},
        {"name": "hot", "what": "at once again", "us_per_frame": 15.0, "low": 14.0, "high": 16.0},
    ],
    "parts": {"bandwidth_s": 0.6, "calls_s": 0.4}, "parts_low": {"bandwidth_s": 0.5, "calls_s": 0.3},
    "parts_high": {"bandwidth_s": 0.7, "calls_s": 0.5}, "conclusion": "A quarter of its time is waiting.",
    "audio": "4.0 s of audio", "rounds": 3, "blocks": 40, "notes": ["A note."],
    "recorded": {
        "verdict": "call-bound", "evidence": "B", "us_per_frame": 33.5, "parts": {"bandwidth_s": 0.2, "calls_s": 0.8},
        "parts_low": {"bandwidth_s": 0.1, "calls_s": 0.7}, "parts_high": {"bandwidth_s": 0.3, "calls_s": 0.9},
    },
}  # fmt: skip
CONFIRM: dict[str, Any] = {
    "stage": "score.gaussians", "verdict": "bandwidth-bound", "evidence": "B", "sentence": "Moves much.",
    "verdict_now": "bandwidth-bound", "sentence_now": None, "survives": True, "why": "Three of three.",
    "audio": "4.0 s of audio", "rounds": 3, "notes": [],
    "perturbations": [
        {"name": "batch", "change": "block 16", "predicted": 0.3, "measured_ratio": 0.32,
         "ci95": [0.31, 0.33], "agrees": True, "why": "within the band", "unavailable": None},
        {"name": "threads", "change": None, "predicted": None, "measured_ratio": None, "ci95": None,
         "agrees": None, "why": None, "unavailable": "there is one processor"},
    ],
}  # fmt: skip
AUDIT: dict[str, Any] = {
    "frames": 500, "score_error_near": 0.1234, "score_error_asked": None, "near_nat": 20.0, "same_best_senone": 0.973,
    "wer": 0.25, "cer": None, "wer_exact": 0.2, "wer_change": 0.05, "wer_change_ci95": [-0.01, 0.11], "wer_words": 20,
    "shares": {"gaussians": 0.25, "senones": 1.0, "exponentials": 1.5}, "frames_copied": 0.5, "notes": ["A note."],
    "transcribed": {"utterances": 2, "of": 2},
    "approximations": {"gmm.selection.enabled": True, "gmm.selection.method": "top-n"},
    "utterances": [
        {"id": "unknown", "hypothesis": "so", "exact": "so", "reference": None, "errors": None, "exact_errors": None},
        {"id": "as-good", "hypothesis": "so", "exact": "so", "reference": "so", "errors": 0, "exact_errors": 0},
        {"id": "worse", "hypothesis": "yes", "exact": "no", "reference": "no", "errors": 1, "exact_errors": 0},
    ],
}  # fmt: skip
WHATIF: dict[str, Any] = {
    "rtf": 0.3, "predicted_rtf": 0.1, "assumptions": ["Other settings stay."],
    "stages": [{"name": "score.gaussians", "time_s": 1.0, "predicted_s": 0.3, "factor": 0.3}],
    "check": {
        "audio": "4.0 s of audio", "rounds": 5, "rtf": 0.31, "changed_rtf": 0.11, "difference": 0.066,
        "predicted_ratio": 0.333, "ratio": 0.355, "ci95": [0.34, 0.37],
        "stages": [
            {"name": "score.gaussians", "predicted": 0.3, "ratio": None, "ci95": None},
            {"name": "search.emit", "predicted": 1.0, "ratio": 1.2, "ci95": [1.1, 1.3]},
        ],
        "wer_words": 33, "wer_errors": 4, "changed_wer_errors": 5,
    },
}  # fmt: skip
COMPARE: dict[str, Any] = {
    "a": "/s/one.asrs", "b": "/s/two.asrs", "warnings": ["The host differs: here in A, there in B."], "floor": None,
    "overall": {"ratio": 1.01, "ci95": [0.95, 1.07], "verdict": "undecided", "rtf_a": 0.1, "rtf_b": 0.101},
    "stages": [
        {"name": "a", "a_s": 1.0, "b_s": 0.5, "ratio": 0.5, "ci95": [0.4, 0.6], "p_adjusted": 0.001,
         "verdict": "B faster"},
    ],
    "only_a": {"gone": 0.25}, "only_b": {}, "wer": {"a": 0.2, "b": 0.25}, "cer": {"a": None, "b": None},
    "wer_errors": {"a": 4, "b": 5}, "transcribed": {"utterances": 1, "of": 2}, "repeats": 4, "audio_s": 2.0,
    "interleaved": False, "differences": {"search.beam": [16.0, None]}, "utterances": {"matched": 500},
    "words": {
        "of": 500, "differ": 3,
        "utterances": [
            {"id": "u7", "reference": "so it is", "a": "so it is", "b": "is", "errors_a": 0, "errors_b": 2},
            {"id": "u8", "reference": None, "a": "", "b": "well", "errors_a": None, "errors_b": None},
        ],
    },
}  # fmt: skip


def streams(n: int, p99: float, held: int = 1, measurements: int = 1) -> dict[str, object]:
    latency = {"p50": p99 / 2, "p90": p99 / 1.5, "p99": p99}
    names = ("first_shown", "without_emission", "stable", "chunk")
    return {
        "n": n, "rtfx": 40.0, "rtf": {"p50": 0.04, "p99": 0.1}, "queue_grows": p99 > 1, "memory_bytes": n * 165e6,
        "latency_s": {**dict.fromkeys(names, latency), "final": None}, "core_s_per_audio_hour": 129.0, "words": 400,
        "measurements": measurements, "held": held, "p99_range_s": [0.9 * p99, 1.1 * p99],
    }  # fmt: skip


CAPACITY: dict[str, Any] = {
    "schema": 1, "study": "calls.capacity", "finished": True, "cores": 2, "capacity": 12, "capacity_range": [12, 13],
    "bound_p99_s": 0.5, "why": "Waiting for a core grows most.", "bound_meaning": "until a word is first shown",
    "rtfx_meaning": "audio by time", "memory_meaning": "of all", "chunk_ms": 160,
    "notes": [], "cpu_limit": None, "streams": [streams(1, 0.2), streams(12, 0.4, 3, 3), streams(13, 2.0, 1, 3)],
}  # fmt: skip
SWEEP = made_study.four_trials()
VERBS = {
    explain: EXPLAIN, confirm: CONFIRM, audit: AUDIT, whatif: WHATIF, compare: COMPARE, capacity: CAPACITY,
    sweep: SWEEP,
}  # fmt: skip


def parts(document: Document, kind: type) -> list[Any]:
    return [part for part in document.parts if isinstance(part, kind)]


@each("verb, tree", list(VERBS.items()))
def test_the_window_reads_what_the_command_makes(verb, tree):
    made = verb.document(tree)
    read = msgspec.json.decode(msgspec.json.encode(made), type=Document)
    assert msgspec.json.encode(read) == msgspec.json.encode(made)
    assert _output.text(read) == _output.text(made)
    assert made.summary
    for table in parts(made, Table):
        assert {len(row) for row in table.rows} <= {len(table.headers)}, table.title


@each(
    "verb, tree, fragments",
    [
        (explain, EXPLAIN, [
            "Here 21.60 µs per frame (undecided · C); in the session 33.50 µs per frame (call-bound · B).",
            "hot         15.00  14.00 – 16.00  0.75\n  at once again", "note: A note.",
            "call overhead      40%  30% – 50%      80%  70% – 90%", "A quarter of its time is waiting.",
        ]),
        (explain, EXPLAIN | {"recorded": None}, ["Here 21.60 µs per frame (undecided · C). Moves 9.4 MB per frame."]),
        (confirm, CONFIRM, [
            "The verdict survives. In the session: bandwidth-bound · B; now: bandwidth-bound.",
            "batch    block 16      0.300     0.320  0.310 – 0.330  yes\n  within the band",
            "  there is one processor",
        ]),
        (confirm, CONFIRM | {"survives": False}, ["does not survive."]),
        (confirm, CONFIRM | {"survives": None}, ["neither confirmed nor refuted."]),
        (audit, AUDIT, [
            "gmm.selection.enabled=true · gmm.selection.method=top-n · 3 utterances · 500 frames",
            "0.123 nat off on average", "97.3 % of the frames; – off for active senones.", "in 1 of 3 utterances.",
            "WER 20.0 % exact → 25.0 %: +5.0 points, 95 % interval -1.0 … +11.0, over 20 words.",
            "Gaussians 25.0 %, Senones 100.0 %, Exponentials 150.0 %.", "Frames copied: 50.0 %.",
        ]),
        (audit, AUDIT | {"cer": 0.25}, ["CER 20.0 % exact → 25.0 %: ", "over 20 characters."]),
        (audit, AUDIT | dict.fromkeys(("wer", "wer_exact", "wer_change", "wer_change_ci95")) | {"shares": {}}, [
            "Without transcripts the word errors are not known.",
        ]),
        (whatif, WHATIF, [
            "35.5% (34.0% – 37.0%) of the time without it", "RTF 0.3000 → 0.1000 predicted.",
            "the prediction was 33.3%, and the outcome is +6.6% from it.", "5 word errors in 33 words",
        ]),
        (whatif, WHATIF | {"check": None, "predicted_rtf": None}, ["RTF 0.3000 → – predicted"]),
        (compare, COMPARE, [
            "A: /s/one.asrs · B: /s/two.asrs · search.beam: 16 in A, unknown in B",
            "undecided: B takes 1.010 (0.950 – 1.070) of A's time (RTF 0.1000 and 0.1010), over 4 repeats",
            "WER 20.0% in A (4 errors), 25.0% in B (5 errors); 1 of 2", "note: The host differs",
            "a      1.000 s  0.500 s  0.500  0.400 – 0.600      0.0010  B faster",
            "gone   0.250 s        –      –              –           –  only in A",
            "differ in 3 of 500 utterances.", "the 2 worst are listed, 1 are left out.",
        ]),
        (capacity, CAPACITY, [
            "12 streams on 2 cores (by single measurements 12 to 13): p99 of the delay is at most 0.5 s",
            "Waiting for a core grows most.",
        ]),
        (sweep, SWEEP, [
            "4 trials: 3 done, 1 failed · 2 on the front", "Trial 0 is not confirmed: The repeats were too few",
            "Trial 2: failed. The run failed on here: it crashed.",
            "0      ✓              7.0      0.500              –   40.0     200      160  0.050  done",
        ]),
    ],
)  # fmt: skip
def test_what_a_verb_says(verb, tree, fragments):
    said = _output.text(verb.document(tree))
    for fragment in fragments:
        assert fragment in said


def test_ratios_and_bars_are_drawn_where_they_were_measured():
    (drawn,) = parts(confirm.document(CONFIRM), Ratios)
    assert drawn.rows == [RatioRow("block 16", 0.32, [0.31, 0.33], "B faster", 0.3, "as predicted")]
    (drawn,) = parts(whatif.document(WHATIF), Ratios)
    assert [tuple(row) for row in drawn.rows] == [
        ("whole run", 0.355, [0.34, 0.37], "B faster", 0.333, "faster"),
        ("search.emit", 1.2, [1.1, 1.3], "A faster", 1.0, "slower"),
    ]
    (drawn,) = parts(compare.document(COMPARE), Ratios)
    assert [row.name for row in drawn.rows] == ["whole run", "a"]
    (drawn,) = parts(explain.document(EXPLAIN), Drawing)
    assert drawn.chart.layers == (Bars("", (20.0, 15.0), (19.0, 14.0), (22.0, 16.0)),)
    (drawn,) = parts(audit.document(AUDIT), Drawing)
    assert drawn.chart.layers == (Bars("work", (25.0, 100.0, 150.0)),)
    assert not parts(audit.document(AUDIT | {"shares": {}}), Drawing)


def test_the_worst_utterances_come_first():
    *_, words = parts(audit.document(AUDIT), Table)
    assert [row[0] for row in words.rows] == ["worse", "as-good", "unknown"]
    assert words.rows[0] == ["worse", 0, 1, "no", "no", "yes"]
    assert words.aside
    *_, words = parts(compare.document(COMPARE), Table)
    assert words.rows == [["u7", 0, 2, "so it is", "so it is", "is"], ["u8", None, None, "–", "–", "well"]]


def test_streams_by_number_with_bound_range_and_capacity():
    found = capacity.document(CAPACITY)
    (table,) = parts(found, Table)
    assert table.rows[1][:4] == [12, "0.200", "0.267", "0.400"]
    assert table.rows[1][8:] == ["0.040", "0.100", "40.0", "1980", "129", 400, "no", "3 of 3"]
    (drawing,) = parts(found, Drawing)
    p99, p50, *marks = drawing.chart.layers
    assert (p99.x, p99.y) == ((1.0, 12.0, 13.0), (0.2, 0.4, 2.0))
    assert p99.low == pytest.approx((0.18, 0.36, 1.8))
    assert p99.high == pytest.approx((0.22, 0.44, 2.2))
    assert p50.y == (0.1, 0.2, 1.0)
    assert marks == [Mark("bound 0.5 s", 0.5), Mark("12 streams", 12.0, on="x")]


def test_a_terminal_has_aligned_columns_and_sentences_below_their_rows():
    table = Table(
        "Title", ("name", "time spent", "why", "count"),
        [("a", "1.5 s", "Because.", 7), ("longer", "–", "", None)], (2,),
    )  # fmt: skip
    chart = Drawing("Title", Chart(Axis("x"), Axis("y"), ()))
    aside = Table("Title", ("aside",), [("hidden",)], aside=True)
    found = Document("Outcome.", [Notes(["Slow."]), chart, table, "After\nit.", aside, Section("Tab")])
    assert _output.text(found).splitlines() == [
        "Outcome.", "note: Slow.", "",
        "         time", "name    spent  count", "a       1.5 s      7", "  Because.", "longer      –      –", "",
        "After\\nit.",
    ]  # fmt: skip
    two = Table("", ("a", "why", "how"), [("x", "W.", "H.")], (1, 2))
    assert _output.text(Document("", [two])).splitlines() == ["a", "x", "  why: W.", "  how: H."]


def test_what_is_no_number_is_null_in_json(capsys):
    tree = EXPLAIN | {"ways": [way | {"high": math.inf} for way in EXPLAIN["ways"]]}
    flags = Namespace(json=True, document=True)
    _output.print_report(tree, flags, explain.document)
    printed = msgspec.json.decode(capsys.readouterr().out)
    (drawn,) = parts(msgspec.convert(printed["document"], Document), Drawing)
    assert drawn.chart.layers[0].high == (None, None)
