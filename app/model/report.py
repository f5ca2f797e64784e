"""The report of a session as JSON with the documented keys: what `run`, `show` and the exported report tell. No Qt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from app.model import latency, memory, word_latency
from profiler.analysis.recorded import counts_steps
from profiler.clock import FRAME_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.audio.word_errors import ErrorCount
    from profiler.analysis.track import CostTrack
    from profiler.analysis.verdict import Parts
    from profiler.session.model import Utterance
    from profiler.session.reader import Session

Tree = dict[str, Any]  # A report: JSON values by key


STAGE: Final = (
    *("name", "group", "lane", "share", "calls", "flops", "bytes_min", "bytes_max", "work"),
    *("verdict", "evidence", "sentence", "defect", "too_close"),
)
TRANSFER: Final = ("stage", "lane", "copies", "bytes", "pinned_bytes", "bytes_per_s", "overlapped", "of_roof")
ALTERNATIVES = ("nbest", "confidences")  # What is recorded of an utterance besides its words, if a lattice was on


class Selected(NamedTuple):
    """Frames [first, last) and stage or group of a report, None each: all of them; and the texts that select them."""

    frames: tuple[int, int] | None = None
    stage: str | None = None
    names: tuple[str, ...] = ()


ALL: Final = Selected()


def report(session: Session, track: CostTrack | None = None, selected: Selected = ALL) -> Tree:
    """The JSON object of `run` and `show` for an open session; `track`: up to date, where there is one.

    Of selected frames, what is known of the whole run alone is None or empty.
    """
    from app.model.alignment import errors_in
    from pipelines.audio.word_errors import transcribed
    from profiler import counting
    from profiler.analysis import device
    from profiler.analysis.breakdown import breakdown
    from profiler.analysis.own_cost import recorder_cost
    from profiler.analysis.track import CostTrack
    from profiler.machine.roofs.table import sound_drift

    if track is None:
        track = CostTrack()
        track.update(session)
    frames, stage, _ = selected
    first, last = frames or (0, int(track.n_frames))
    last = min(last, int(track.n_frames))
    parts = breakdown(session, track=track) if frames is None else breakdown(session, first, last, track)
    whole = (first, last) == (0, track.n_frames)
    hidden = device.hidden_ns(session, first, None if whole else last)
    of_steps = counts_steps(session)
    waits = latency.of_session(session, track, last)
    counted = counting.by_stage(session) if frames is None else {}
    within = [u for u in session.utterances if frames is None or (u.first_frame < last and u.end_frame > first)]
    of_words = word_latency.by_utterance(session)
    utterances = [utterance(u, session.meta.get(f"alternatives/{u.id}")) | of_words.get(u.id, {}) for u in within]
    errors, _ = errors_in(session, first, last, int(track.n_frames))
    return {
        "schema": 1,
        "session": str(session.path),
        "state": session.state,
        "problem": session.meta.get("problem"),
        "steps": last - first if of_steps else None,
        "audio_s": 0.0 if of_steps else parts.audio_s,
        **{f"{name}_s": getattr(parts, f"{name}_ns") / 1e9 for name in ("wall", "setup", "idle", "stopped")},
        "rtf": None if of_steps else parts.rtf,
        "latency": None if waits is None else waits.as_dict(),
        "latency_s": word_latency.as_dict(session, frames),
        "selection": _selection(selected),
        "memory": memory.memory(session) if frames is None else None,
        "cost": memory.cost(session) if frames is None else None,
        "shares": shares(session, track, first, last),
        **words(errors),
        "transcribed": transcribed(within)._asdict(),
        "notes": session.meta.get("notes") or [],
        "utterances": utterances,
        "configurations": configurations(session, within),
        "categories": {f"{name}_s": ns / 1e9 for name, ns in parts.categories.items()}
        | {"hidden_s": None if hidden is None else hidden / 1e9},
        "parts": {group: intervals(parts.parts_of(group))["parts"] for group in ("scoring", "search")},
        "stages": [
            {
                **fields(row, *STAGE),
                "time_s": row.time_ns / 1e9,
                "own_s": row.own_ns / 1e9,
                **intervals(row.parts),
                **_counters(counted.get((row.name, row.lane))),
            }
            for row in parts.stages
            if stage in (None, row.name, row.group)
        ],
        "operators": session.meta.get("operators") or [],
        "counters": _about_counters(session),
        "transfers": [
            {**fields(row, *TRANSFER), "time_s": row.time_ns / 1e9}
            for row in device.transfers(session, first, frames and last)
        ],
        "recorder": recorder_cost(session, track, whole).as_dict(),
        "drift": sound_drift(session.meta.get("drift")) or None,
        "config": session.configs[-1].tree if session.configs else {},
        "machine": session.meta.get("machine", {}),
        "preset": session.meta.get("preset"),
        "markers": [fields(m, "kind", "text", "asked_frame", "applied_frame") for m in session.markers],
    }


def _selection(selected: Selected) -> dict[str, Any] | None:
    frames, stage, names = selected
    if selected == ALL:
        return None
    first, last = (None, None) if frames is None else (frames[0] * FRAME_S, frames[1] * FRAME_S)
    return {"select": list(names), "first_s": first, "last_s": last, "stage": stage}


def shares(session: Session, track: CostTrack, first: int, last: int) -> dict[str, float | None]:
    """How much was scored in frames [first, last): shares of all senones of all frames, and of the frames."""
    about = session.meta.get("scoring") or {}
    frames, counts = last - first, track.work_rows
    all_senones = frames * about.get("senones", 0) / about.get("frames_per_output", 1)

    def share(name: str, whole: float) -> float | None:
        return counts[name].total(first, last) / whole if whole and name in counts else None

    return {
        "senones_scored": share("scoring senones", all_senones),
        "senones_asked": share("search senones", all_senones),
        "frames_copied": share("scoring copied", frames),
    }


def utterance(u: Any, alternatives: Any) -> dict[str, Any]:
    """One utterance's row; `alternatives`: its n-best list and word confidences, if recorded."""
    from pipelines.audio.word_errors import errors_of
    from profiler.analysis.recorded import real_time_factor

    return {
        "id": u.name,
        "audio_s": u.audio_s,
        "wall_s": u.wall_ns / 1e9 if u.wall_ns is not None else None,
        "rtf": real_time_factor(u.wall_ns, u.audio_s) if u.wall_ns is not None else None,
        "hypothesis": u.hypothesis,
        "reference": u.reference,
        **words(errors_of(u)),
        "complete": u.complete,
        "notes": list(u.notes),
        **{key: alternatives[key] for key in ALTERNATIVES if key in (alternatives or {})},
    }


def words(count: ErrorCount | None) -> dict[str, Any]:
    """Word error rate, errors and words; of these, what is counted by characters. None where there is nothing of it."""
    values: list[float | None] = [None] * 6
    if count is not None and count.words:
        values[:3] = count.rate, count.errors, count.words
        if count.characters:
            values[3:] = count.of_characters / count.characters, count.of_characters, count.characters
    return dict(zip(("wer", "wer_errors", "wer_words", "cer", "cer_errors", "cer_characters"), values, strict=True))


def configurations(session: Session, utterances: Sequence[Utterance]) -> list[dict[str, Any]]:
    """Every configuration: its epochs, what differs from the first one, and errors outside an A/B within the run."""
    from app.model.configurations import differing, every, turns_within
    from pipelines.audio.word_errors import word_errors

    turns, found = turns_within(session), every(session)
    return [
        {
            "epochs": sorted(epochs),
            "set": {key: settings.get(key) for key in sorted(differing(found[0][1], settings))},
            **words(word_errors(u for u in utterances if (epochs - turns).issuperset(u.epochs))),
        }
        for epochs, settings in found
    ]


def fields(row: object, *names: str) -> Tree:
    return {name: getattr(row, name) for name in names}


def intervals(parts: Parts | None) -> dict[str, dict[str, float] | None]:
    """The parts of a stage with the ends of their intervals; None each where its law names none."""
    ends = {"parts": "likely", "parts_low": "low", "parts_high": "high"}
    if parts is None:
        return dict.fromkeys(ends)
    return {key: {f"{name}_s": ns / 1e9 for name, ns in getattr(parts, end).items()} for key, end in ends.items()}


def _counters(counted: Any) -> dict[str, Any]:
    if counted is None:
        return {"counters": None, "counters_evidence": None}
    return {"counters": counted.values, "counters_evidence": "A" if counted.exact else "D"}


def _about_counters(session: Session) -> dict[str, Any] | None:
    about = session.meta.get("recorder") or {}
    if "counters" not in about:
        return None
    absent, cost = about.get("counters_absent", {}), about.get("ns_per_counter_read")
    return {"read": about["counters"], "absent": absent, "ns_per_reading": cost}
