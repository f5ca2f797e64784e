"""The report of a session: what `run` and `show` print, as JSON (with the documented keys) or as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.cli import _output
from app.model import latency
from profiler.plain import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.audio.word_errors import ErrorCount
    from profiler.analysis.breakdown import Breakdown
    from profiler.analysis.device import Transfers
    from profiler.analysis.parts import Parts
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

SHARES = {
    "scoring senones": "senones_scored",
    "search senones": "senones_asked",
    "scoring copied": "frames_copied",
}
"""Work counts reported as a share of their maximum, and the key of that share."""

ALTERNATIVES = ("nbest", "confidences")
"""What is recorded of an utterance besides its words, if a lattice was on."""


def report(session: Session) -> dict[str, Any]:
    """The JSON object of `run` and `show` for an open session."""
    from pipelines.audio.word_errors import word_errors
    from profiler import counting
    from profiler.analysis import device
    from profiler.analysis.breakdown import breakdown
    from profiler.analysis.track import CostTrack
    from profiler.machine.roofs.table import sound_drift

    track = CostTrack()
    track.update(session)
    parts = breakdown(session, track=track)
    waits = latency.of_session(session, track)
    counted = counting.by_stage(session)
    utterances = [
        utterance(u, session.meta.get(f"alternatives/{u.id}")) for u in session.utterances
    ]
    return {
        "schema": 1,
        "session": str(session.path),
        "state": session.state,
        "audio_s": parts.audio_s,
        "wall_s": parts.wall_ns / 1e9,
        "setup_s": parts.setup_ns / 1e9,
        "idle_s": parts.idle_ns / 1e9,
        "rtf": parts.rtf,
        "latency": None if waits is None else waits.as_dict(),
        "shares": shares(session, track),
        **words(word_errors(session.utterances)),
        "utterances": utterances,
        "configurations": configurations(session),
        "categories": _categories(parts),
        "parts": {group: _parts(parts.parts_of(group)) for group in ("scoring", "search")},
        "stages": [
            _stage(row) | _counters(counted.get((row.name, row.lane))) for row in parts.stages
        ],
        "counters": _about_counters(session),
        "transfers": [_transfer(row) for row in device.transfers(session)],
        "recorder": parts.recorder.as_dict(),
        "machine_speed": _speed(parts.slowness),
        "drift": sound_drift(session.meta.get("drift")) or None,
        "config": session.configs[-1].tree if session.configs else {},
        "machine": session.meta.get("machine", {}),
        "preset": session.meta.get("preset"),
        "markers": [
            {
                "kind": m.kind,
                "text": m.text,
                "asked_frame": m.asked_frame,
                "applied_frame": m.applied_frame,
            }
            for m in session.markers
        ],
    }


def shares(session: Session, track: CostTrack) -> dict[str, float | None]:
    """How much was scored: shares of all senones of all frames, and of the frames."""
    about = session.meta.get("scoring")
    senones = about.get("senones") if isinstance(about, dict) else None
    wholes = {
        "scoring senones": track.n_frames * senones if isinstance(senones, int) else 0,
        "search senones": track.n_frames * senones if isinstance(senones, int) else 0,
        "scoring copied": track.n_frames,
    }
    counts = track.work
    return {
        SHARES[name]: float(counts[name].sum()) / whole if whole and name in counts else None
        for name, whole in wholes.items()
    }


def utterance(u: Any, alternatives: Any) -> dict[str, Any]:
    """One utterance's row; `alternatives`: its n-best list and word confidences, if recorded."""
    from pipelines.audio.word_errors import errors_of
    from profiler.analysis.utterances import real_time_factor

    return {
        "id": u.name,
        "audio_s": u.audio_s,
        "wall_s": u.wall_ns / 1e9 if u.wall_ns is not None else None,
        "rtf": real_time_factor(u.wall_ns, u.audio_s) if u.wall_ns is not None else None,
        "hypothesis": u.hypothesis,
        "reference": u.reference,
        **words(errors_of(u)),
        **{key: alternatives[key] for key in ALTERNATIVES if key in (alternatives or {})},
    }


def words(count: ErrorCount | None) -> dict[str, Any]:
    """Word error rate, errors and words; all None without a transcript."""
    known = count is not None and count.words > 0
    return {
        "wer": count.rate if count and known else None,
        "wer_errors": count.errors if count and known else None,
        "wer_words": count.words if count and known else None,
    }


def configurations(session: Session) -> list[dict[str, Any]]:
    """Every configuration of the session: its epochs, what differs from the first one, and its word errors."""
    from app.model.configurations import Configurations, differing
    from pipelines.audio.word_errors import word_errors

    found = Configurations().all(session)
    return [
        {
            "epochs": sorted(epochs),
            "set": {key: settings.get(key) for key in sorted(differing(found[0][1], settings))},
            **words(word_errors(u for u in session.utterances if epochs.issuperset(u.epochs))),
        }
        for epochs, settings in found
    ]


def _categories(parts: Breakdown) -> dict[str, float | None]:
    seconds: dict[str, float | None] = {
        f"{name}_s": ns / 1e9 for name, ns in parts.categories.items()
    }
    seconds["hidden_s"] = None if parts.hidden_ns is None else parts.hidden_ns / 1e9
    return seconds


def _stage(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "group": row.group,
        "lane": row.lane,
        "time_s": row.time_ns / 1e9,
        "share": row.share,
        "calls": row.calls,
        "flops": row.flops,
        "bytes_min": row.bytes_min,
        "bytes_max": row.bytes_max,
        "work": row.work,
        "verdict": row.verdict,
        "evidence": row.evidence,
        "sentence": row.sentence,
        "defect": row.defect,
        **_intervals(row.parts),
    }


def _parts(parts: Parts | None) -> dict[str, float] | None:
    """The likely seconds of each part."""
    return None if parts is None else _seconds(parts.likely)


def _intervals(parts: Parts | None) -> dict[str, dict[str, float] | None]:
    """The parts of a stage with the ends of their intervals; None each where its law names none."""
    if parts is None:
        return {"parts": None, "parts_low": None, "parts_high": None}
    return {
        "parts": _seconds(parts.likely),
        "parts_low": _seconds(parts.low),
        "parts_high": _seconds(parts.high),
    }


def _seconds(times: Mapping[str, float]) -> dict[str, float]:
    return {f"{name}_s": ns / 1e9 for name, ns in times.items()}


def _transfer(row: Transfers) -> dict[str, Any]:
    return {
        "stage": row.stage,
        "lane": row.lane,
        "copies": row.copies,
        "bytes": row.bytes,
        "pinned_bytes": row.pinned_bytes,
        "time_s": row.time_ns / 1e9,
        "bytes_per_s": row.bytes_per_s,
        "overlapped": row.overlapped,
        "of_roof": row.of_roof,
    }


def _counters(counted: Any) -> dict[str, Any]:
    """Totals by name, with grade A if counted around the stage alone, D if estimated."""
    if counted is None:
        return {"counters": None, "counters_evidence": None}
    return {"counters": counted.values, "counters_evidence": "A" if counted.exact else "D"}


def _speed(slowness: tuple[float, float] | None) -> dict[str, float] | None:
    """How fast arithmetic and memory were relative to their roofs; None where they were not probed."""
    if slowness is None:
        return None
    return dict(zip(("arithmetic", "memory"), (1.0 / each for each in slowness), strict=True))


def _about_counters(session: Session) -> dict[str, Any] | None:
    """Which counters were read and what a reading costs; None if counting was off."""
    about = session.meta.get("recorder")
    if not isinstance(about, dict) or not isinstance(about.get("counters"), list):
        return None
    cost = about.get("ns_per_counter_read")
    return {
        "read": [str(name) for name in about["counters"]],
        "absent": about.get("counters_absent", {}),
        "ns_per_reading": cost if isinstance(cost, int | float) else None,
    }


def _words_with(row: dict[str, Any]) -> str:
    """The word errors of one configuration, in a line."""
    changed = ", ".join(f"{key} = {_output.plain(value)}" for key, value in row["set"].items())
    return (
        f"  {row['wer']:.1%}: {row['wer_errors']} errors in {row['wer_words']} words with "
        f"{changed or 'the settings at the start'}"
    )


def as_text(tree: dict[str, Any]) -> str:
    """The report as text."""
    lines = [
        f"{tree['audio_s']:.1f} s of audio in {tree['wall_s']:.2f} s: RTF {_number(tree['rtf'], '.3f')}"
        f" (set-up {_number(tree['setup_s'], '.1f')} s, waiting {_number(tree['idle_s'], '.1f')} s, both excluded)"
    ]
    if tree["wer"] is not None:
        lines.append(
            f"WER {tree['wer']:.1%}: {counted(tree['wer_errors'], 'error', 'errors')} in "
            f"{counted(tree['wer_words'], 'word', 'words')}"
        )
    if len(tree.get("configurations") or ()) > 1:
        lines += [_words_with(row) for row in tree["configurations"] if row["wer"] is not None]
    if tree.get("latency"):
        lines.append(f"{latency.text(tree['latency'])} (first frame of a block, to its scores)")
    done = [
        f"{key.replace('_', ' ')} {share:.1%}"
        for key, share in (tree.get("shares") or {}).items()
        if share is not None
    ]
    if done:
        lines.append("of all: " + ", ".join(done))
    for utterance in tree["utterances"]:
        lines.append(f"  {utterance['id']:24} {utterance['hypothesis'] or '(nothing)'}")
    if tree["categories"]:
        lines += ["", f"{'category':28} {'time':>10} {'share':>7}"]
        for name, value in tree["categories"].items():
            if value is not None:
                share = value / tree["wall_s"] if tree["wall_s"] else 0.0
                lines.append(f"{_category(name):28} {value:8.3f} s {share:7.1%}")
    if tree["stages"]:
        lines += ["", f"{'stage':28} {'time':>10} {'share':>7} {'calls':>8}  verdict · evidence"]
        for row in tree["stages"]:
            lines.append(
                f"{row['name']:28} {row['time_s']:8.3f} s {_number(row['share'], '.1%'):>7} {row['calls']:8d}  "
                f"{row['verdict'] or ''} · {row['evidence']}"
            )
            lines += _part_lines(row["parts"], row["parts_low"], row["parts_high"])
        whole = {group: _part_lines(found) for group, found in tree["parts"].items()}
        if any(whole.values()):
            lines += [
                "",
                *(f"all of {group}:{line[1:]}" for group in whole for line in whole[group]),
            ]
        lines += [f"defect: {row['defect']}" for row in tree["stages"] if row["defect"]]
    lines += _counter_lines(tree)
    lines += [
        f"{row['stage']} ({row['lane']}): {row['bytes'] / 1e6:.1f} MB in {row['copies']} copies, "
        f"{_number(row['bytes_per_s'] and row['bytes_per_s'] / 1e9, '.2f')} GB/s, "
        f"{_number(row['overlapped'], '.0%')} of the time overlapped by other work"
        + (f", {row['of_roof']:.0%} of what such copies reach here" if row["of_roof"] else "")
        for row in tree.get("transfers", [])
    ]
    if speed := tree.get("machine_speed"):
        lines += [
            "",
            f"machine, while it ran: arithmetic at {speed['arithmetic']:.0%} and memory at {speed['memory']:.0%} "
            "of its roofs",
        ]
    lines += _drift_lines(tree.get("drift"))
    if tree["recorder"]:
        from profiler.analysis.own_cost import RecorderCost

        cost = RecorderCost(**tree["recorder"])
        lines += [
            "",
            f"recorder: {counted(cost.spans, 'span', 'spans')} at {_number(cost.ns_per_span, '.0f')} ns, "
            f"{', '.join(cost.losses)}, {_number(cost.perturbation, '.2%')} of the run",
        ]
    return _output.page(lines)


def _category(key: str) -> str:
    from profiler.analysis.categories import CATEGORY_NAMES

    name = key.removesuffix("_s")
    return CATEGORY_NAMES.get(name, name)


def _part_lines(
    likely: dict[str, float] | None,
    low: dict[str, float] | None = None,
    high: dict[str, float] | None = None,
) -> list[str]:
    """What a stage's time consists of in one line, the largest part first, with intervals where they are wide."""
    from profiler.analysis.categories import PART_NAMES
    from profiler.analysis.parts import TOLD_FROM

    time = sum(likely.values()) if likely else 0.0
    if not likely or not time:
        return []
    said = []
    for key in sorted(likely, key=lambda key: -likely[key]):
        share = likely[key] / time
        if share < TOLD_FROM:
            continue
        ends = (low[key] / time, high[key] / time) if low and high else (share, share)
        wide = ends[1] - ends[0] >= TOLD_FROM
        said.append(
            f"{PART_NAMES[key.removesuffix('_s')]} {share:.0%}"
            + (f" ({ends[0]:.0%} to {ends[1]:.0%})" if wide else "")
        )
    return [f"  {', '.join(said)}"]


def _counter_lines(tree: dict[str, Any]) -> list[str]:
    about = tree.get("counters")
    if not about:
        return []
    names = about["read"]
    if not names:
        return ["", "counters: none can be read here; `asrscope doctor` says why"]
    lines = ["", f"{'counted per stage':28}" + "".join(f" {name:>17}" for name in names)]
    for row in tree["stages"]:
        if row["counters"] is not None:
            values = [f" {_number(row['counters'].get(name), '17,d')}" for name in names]
            lines.append(f"{row['name']:28}{''.join(values)}  {row['counters_evidence']}")
    cost = _number(about["ns_per_reading"], ".0f")
    lines.append(f"a reading costs {cost} ns; A: counted, D: shared among stages of the same call")
    return lines


def _drift_lines(changes: dict[str, float] | None) -> list[str]:
    """How the roofs measured again at the end of the run compare with those used for its verdicts."""
    from profiler.machine.roofs.table import drift_text, drift_warning

    if not changes:
        return []
    warning = drift_warning(changes)
    lines = ["", f"roofs since their calibration: {drift_text(changes)}"]
    return [*lines, f"warning: {warning}"] if warning else lines


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
