"""A figure that is shown in several places is the same in all of them, and what should add up does.

FIGURES is the table: for each figure the places that show it. The first place is what the others are held against;
text is held to the digits that it prints. A new place is one line.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import figures_shown as at
import pytest
import tangled_session
from figures_shown import Opened, Reader, Shown, Value, Values
from PySide6.QtCore import QCoreApplication

from app.model.faster import unchanged
from app.model.report import report
from app.views.icicle import GROUP, STAGE, icicle_model
from app.views.stage_panel import sum_text
from pipelines import config as settings
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from profiler.analysis import whatif
from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import NOT_OWN
from profiler.session.reader import Session
from profiler.spans import TILING

MS = 1e-3
FIGURES: dict[str, dict[str, Reader]] = {
    "rtf": {
        "show --json": lambda o: o.json["rtf"],
        "by hand": lambda o: o.json["wall_s"] / at.audio_by_hand(o),
        "run --json": lambda o: at.of_run(o, "rtf"),
        "show": lambda o: o.of_page(r"RTF (\S+)"),
        "top bar, tool tip": lambda o: Shown(
            o.match(r"with the time that other programs took: ([<\d.]+)", o.window.top.rtf.toolTip())[1]
        ),
        "snapshot": lambda o: o.desk.rtf_with,
        "whatif": lambda o: whatif.unchanged(breakdown(o.session)).rtf,
        "chrome trace": lambda o: o.chrome["otherData"]["rtf"],
    },
    "rtf without other programs": {
        "by hand": lambda o: at.own_s(o) / at.audio_by_hand(o),
        "snapshot": lambda o: o.desk.rtf,
        "top bar": lambda o: at.printed(o.window.top.rtf.value),
        "breakdown, sum": lambda o: Shown(o.match(r"RTF ([<\d.]+)", sum_text(o.desk))[1]),
        "breakdown, sentence": lambda o: Shown(o.match(r"RTF ([<\d.]+)", o.view["breakdown"].summary())[1]),
        "cost, sentence": lambda o: Shown(o.match(r"RTF ([<\d.]+)", o.view["cost"].summary())[1]),
        "faster": lambda o: unchanged(o.desk).rtf,
        "compare": lambda o: {"": c["overall"]["rtf_a"]} if (c := at.compared(o)) and c["repeats"] == 1 else {},
    },
    "time without other programs, s": {
        "by hand": at.own_s,
        "snapshot": lambda o: o.desk.own_ms * o.frames * MS,
        "groups": lambda o: sum(line.ms for line in o.desk.groups) * o.frames * MS,
        "stages": lambda o: sum(line.ms for line in o.desk.stages if line.share is not None) * o.frames * MS,
        "categories": lambda o: (o.desk.wall_ms - sum(o.desk.categories[name] for name in NOT_OWN)) * o.frames * MS,
        "breakdown, sum": lambda o: Shown(o.match(r"sum (\S+) ms", sum_text(o.desk))[1], o.frames * MS),
        "icicle": lambda o: sum(one.ms for one in icicle_model(o.desk) if one.level == GROUP) * o.frames * MS,
        "faster": lambda o: unchanged(o.desk).wall_ns * 1e-9,
    },
    "audio, s": {
        "show --json": lambda o: o.json["audio_s"],
        "by hand": at.audio_by_hand,
        "run --json": lambda o: at.of_run(o, "audio_s"),
        "show": lambda o: o.of_page(r"^([\d.]+) s of audio"),
        "transport": lambda o: Shown(o.match(r"([\d.]+) s of audio", o.window.desk.transport.note.full)[1]),
        "chrome trace": lambda o: o.chrome["otherData"]["audio_s"],
        "compare": lambda o: {"": c["audio_s"]} if (c := at.compared(o)) else {},
    },
    "wall, s": {
        "show --json": lambda o: o.json["wall_s"],
        "run --json": lambda o: at.of_run(o, "wall_s"),
        "show": lambda o: o.of_page(r"audio in ([\d.]+) s"),
        "sum of the categories": lambda o: sum(v for k, v in o.json["categories"].items() if k != "hidden_s"),
        "sum of the table": lambda o: Shown(str(sum(int(row["time_ns"]) for row in o.csv if row["share"])), 1e-9),
        "frames of the window": lambda o: float(o.track.wall_row[:].sum()) * 1e-9,
        "snapshot": lambda o: o.desk.wall_ms * o.frames * MS,
        "whatif": lambda o: whatif.unchanged(breakdown(o.session)).wall_ns * 1e-9,
        "chrome trace": lambda o: o.chrome["otherData"]["wall_s"],
        "chrome trace, tiles": lambda o: (
            {"": sum(v for k, v in at.spans_of_chrome(o).items() if k.partition("/")[0] in TILING)}
            if o.json["state"] == "closed"
            else {}
        ),
    },
    "set-up, s": {
        "show --json": lambda o: o.json["setup_s"],
        "run --json": lambda o: at.of_run(o, "setup_s"),
        "show": lambda o: o.of_page(r"set-up ([\d.]+) s"),
        "breakdown of all frames": lambda o: breakdown(o.session, 0, o.frames, o.track).setup_ns * 1e-9,
        "chrome trace": lambda o: o.chrome["otherData"]["setup_s"],
    },
    "idle, s": {
        "show --json": lambda o: o.json["idle_s"],
        "show": lambda o: o.of_page(r"waiting ([\d.]+) s"),
        "breakdown of all frames": lambda o: breakdown(o.session, 0, o.frames, o.track).idle_ns * 1e-9,
        "chrome trace": lambda o: o.chrome["otherData"]["idle_s"],
    },
    "word errors": {
        "utterances of show --json": at.wer_by_hand,
        "show --json": lambda o: {"errors": o.json["wer_errors"], "words": o.json["wer_words"]},
        "show": at.wer_of_page,
        "top bar": at.wer_of_top,
        "compare": lambda o: (
            {"errors": c["wer_errors"]["a"], "words": c["wer_words"]["a"]}
            if (c := at.compared(o)) and c["wer"]["a"] is not None
            else {}
        ),
    },
    "wer": {
        "show --json": lambda o: o.json["wer"],
        "run --json": lambda o: at.of_run(o, "wer"),
        "show": lambda o: o.of_page(r"WER ([\d.]+)%", 0.01) if o.json["wer"] is not None else None,
        "top bar": lambda o: at.printed(o.window.top.wer.value, 0.01),
    },
    "errors of each utterance": {
        "show --json": lambda o: at.json_words(o, "wer_errors"),
        "words view": lambda o: at.window_words(o, "errors"),
        "scored again": lambda o: at.counted_again(o, "errors"),
        "words marked": at.marked,
    },
    "words of each utterance": {
        "show --json": lambda o: at.json_words(o, "wer_words"),
        "words view": lambda o: at.window_words(o, "words"),
        "scored again": lambda o: at.counted_again(o, "reference_words"),
    },
    "categories, s": {
        "show --json": lambda o: at.categories(o, lambda name: o.json["categories"][f"{name}_s"]),
        "show": lambda o: at.category_of_page(o, 1),
        "chrome trace": lambda o: at.categories(o, lambda name: o.chrome["otherData"]["categories"][f"{name}_s"]),
    },
    "shares of the categories": {
        "show --json": lambda o: at.categories(o, lambda name: o.json["categories"][f"{name}_s"] / o.json["wall_s"]),
        "show": lambda o: at.category_of_page(o, 2, 0.01),
    },
    "categories without other programs, s": {
        "by hand": lambda o: at.categories(o, at.own_categories(o).__getitem__),
        "snapshot": lambda o: at.categories(o, lambda name: o.desk.categories[name] * o.frames * MS),
        "breakdown": lambda o: at.category_of_window(o, 1, o.frames * MS),
    },
    "overhead, s": {
        "show --json": lambda o: o.json["categories"]["overhead_s"],
        "table": lambda o: o.json["wall_s"] * at.overhead_of_table(o),
    },
    "time of each stage, s": {
        "show --json": lambda o: at.stages_of_json(o, "time_s"),
        "show": lambda o: at.stages_of_page(o, 0),
        "table": lambda o: at.stages_of_csv(o, "time_ns", 1e-9),
        "chrome trace": lambda o: at.counting(at.spans_of_chrome(o), o),
        "speedscope": lambda o: at.counting(at.spans_of_speedscope(o), o),
    },
    "share of each stage": {
        "show --json": lambda o: at.stages_of_json(o, "share"),
        "show": lambda o: at.stages_of_page(o, 1, 0.01),
        "table": lambda o: at.stages_of_csv(o, "share"),
    },
    "time of each stage without other programs, s": {
        "by hand": at.own_stages,
        "snapshot": lambda o: {
            f"{line.name}/{line.lane}": line.ms * o.frames * MS for line in o.desk.stages if line.lane
        },
        "breakdown": lambda o: at.stages_of_window(o, 1, o.frames * MS),
        "icicle": lambda o: {
            f"{one.stage}/{lane}": one.ms * o.frames * MS
            for one in icicle_model(o.desk)
            for lane in [next((line.lane for line in o.desk.stages if line.name == one.stage), "")]
            if one.level == STAGE and lane
        },
    },
    "calls of each stage": {
        "show --json": lambda o: at.stages_of_json(o, "calls"),
        "show": lambda o: at.stages_of_page(o, 2),
        "table": lambda o: at.stages_of_csv(o, "calls"),
    },
    **{
        f"{key} of each stage": {
            "show --json": lambda o, key=key: at.stages_of_json(o, key),
            "table": lambda o, key=key: at.stages_of_csv(o, key),
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
            f"{row['stage']}/{row['lane']}/{pair.rpartition('=')[0]}": float(pair.rpartition("=")[2])
            for row in o.csv
            for pair in re.findall(r"\S[^=]*=\d+", row["work"])
        },
    },
    "recorder: share of the run": {
        "show --json": lambda o: o.json["recorder"]["perturbation"],
        "by hand": at.cost_by_hand,
        "show": lambda o: o.of_page(r"([\d.]+|\u2013)%? of the run$", 0.01),
        "status line": lambda o: o.of_status(r"recorder ([\d.]+) % of the run", 0.01),
        "chrome trace": lambda o: o.chrome["otherData"]["recorder"]["perturbation"],
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
        "chrome trace": lambda o: (
            sum(e["ph"] == "X" and e["cat"] != "said" for e in o.chrome["traceEvents"])
            + o.chrome["otherData"]["setup"]["spans"]
        ),
    },
    **{
        f"losses: {key}": {
            "show --json": lambda o, key=key: o.json["recorder"][key],
            "show": lambda o, words=words: int(m[1]) if (m := re.search(rf"(\d+) {words}", o.page)) else 0,
            "status line": lambda o, words=words: o.of_status(rf"(\d+) {words}"),
            "chrome trace": lambda o, key=key: o.chrome["otherData"]["recorder"][key],
        }
        for key, words in (("dropped", "dropped"), ("misplaced", "misplaced"), ("missed", "counter readings missed"))
    },
    "drift, largest": {
        "show --json": lambda o: {"": max(map(abs, o.json["drift"].values()))} if o.json["drift"] else {},
        "status line": lambda o: (
            {"": Shown(m[1], 0.01)}
            if (m := re.search(r"changed by up to (\d+) %", o.window.status.machine.full))
            else {}
        ),
    },
    "scoring of a block, s": {
        "show --json": lambda o: (o.json["latency"] or {"score_s": None})["score_s"],
        "window": at.latency_of_window,
    },
}


def values_of(result: Any) -> Values:
    return result if isinstance(result, Mapping) else {"": result}


def same(wanted: Value, value: Value) -> bool:
    if value is None or wanted is None:
        return value is wanted
    if isinstance(value, Shown):
        return value.stands_for(float(wanted))
    return float(value) == pytest.approx(float(wanted), rel=1e-9, abs=1e-15)


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
    """A real run over some of the bundled voices, and the report that it at.printed."""
    said = folder / "said.tsv"
    lines = ["file\ttranscript", *(f"{speech / name}.flac\t{at.SAID[name]}" for name in at.SPEECH)]
    said.write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = tuple(str(speech / f"{name}.flac") for name in at.SPEECH)
    out = folder / "run.asrs"
    config = settings.assign(settings.Config(), at.SMALL | values)
    request = Request(config, "test", files, str(said), out)
    assert execute(request, Control(), lambda *_: None).state == "closed"
    with Session.open(out) as session:
        return out, report(session)


@pytest.fixture(scope="module", params=[*at.RUNS, "tangled", *at.KEPT])
def session_file(request, tmp_path_factory, bundled_speech):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "tangled":
        return tangled_session.write(folder / "tangled.asrs"), None
    if request.param in at.KEPT:
        return Path(shutil.copy(at.KEPT[request.param], folder)), None
    return recorded(folder, bundled_speech, at.RUNS[request.param])


@pytest.fixture
def opened(session_file, window, tmp_path):
    path, reported = session_file
    w = window()
    assert w.open_session(path)
    # Everything at once: without it the breakdown shows what came after the last change.
    w.playhead.axis.fit()
    w.playhead.axis.select(0.0, w.playhead.n_frames * 0.01)
    for _ in range(20):
        QCoreApplication.processEvents()
    with Session.open(path) as session:
        yield Opened(session, tmp_path, w, reported)


def test_every_figure_is_the_same_in_all_places(opened):
    wrong = [line for figure in FIGURES for line in check(figure, opened)]
    assert not wrong, "\n".join(wrong)


def test_the_losses_of_the_tangled_session_are_those_that_were_made(tmp_path):
    with Session.open(tangled_session.write(tmp_path / "t.asrs")) as session:
        reported = report(session)["recorder"]
    lost = {key: reported[key] for key in ("dropped", "misplaced", "missed")}
    assert lost == {
        "dropped": tangled_session.DROPPED,
        "misplaced": tangled_session.MISPLACED,
        "missed": tangled_session.MISSED,
    }
