"""How long the first frame of a block waits for its scores, and what that consists of. No Qt.

A block is scored when its last frame, and the frames of context after it, have been spoken: block × 10 ms +
context × 10 ms + the time that scoring takes. Not counted: the front end, which here works on whole utterances,
and the search. The context of a CTC net is known where it ran; of one for whole utterances there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import assets
from app.model.configurations import settings_before
from app.model.word_latency import milliseconds
from pipelines import config as settings
from pipelines.config import MIXTURES, Config
from profiler.clock import FRAME_S
from profiler.errors import BadInput
from profiler.files import inputs
from profiler.session.facts import setting

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

BLOCK_KEY: Final = "block"  # The setting beside which it is shown
LATEST_FRAMES: Final = 3000  # It is that of the last half minute: few enough frames to sum up quickly
MAX_FRAMES: Final = 1 << 16  # No block and no context is as long as eleven minutes; whatever says so is not believed
NET_KEY: Final = "dnn.net"
SCORED_BY: Final = ("model", "device", "threads", "block", "frames", "gmm", "dnn", "ctc", "placement")  # Its causes
SCORING: Final = ("compute", "memory", "unexplained", "transfer")  # Categories, with what it moves to a device
PARTS: Final = {"block_s": "block", "context_s": "context", "score_s": "scoring"}  # By key of `as_dict`


@dataclass(frozen=True)
class Latency:
    """Parts of the latency; None where a part is not known, and then nor is the whole."""

    block_frames: int
    context_frames: int | None
    score_s: float | None

    @property
    def block_s(self) -> float:
        return self.block_frames * FRAME_S

    @property
    def context_s(self) -> float | None:
        return None if self.context_frames is None else self.context_frames * FRAME_S

    @property
    def total_s(self) -> float | None:
        if self.context_s is None or self.score_s is None:
            return None
        return self.block_s + self.context_s + self.score_s

    def as_dict(self) -> dict[str, float | None]:
        keys = ("block_frames", "block_s", "context_frames", "context_s", "score_s", "total_s")
        return {key: getattr(self, key) for key in keys}


def texts(parts: Mapping[str, float | None]) -> tuple[str, str, str]:
    """The latency as `Latency.as_dict` gives it in a line: with its parts, with the unit once, or the sum alone."""
    known = [(name, seconds) for key, name in PARTS.items() if (seconds := parts[key])]
    over = "" if parts["total_s"] is not None else "over "
    total = f"latency {over}{milliseconds(sum(seconds for _, seconds in known))} ms"
    with_units, shorter = (
        f"{total}: {' + '.join(f'{milliseconds(seconds)}{unit} {name}' for name, seconds in known)}"
        for unit in (" ms", "")
    )
    return with_units, shorter, total


def of_session(session: Session, track: CostTrack, end: int | None = None, most: int | None = None) -> Latency | None:
    """The latency under the last settings before frame `end`, by at most `most` frames; None without settings."""
    from profiler.analysis.categories import CATEGORIES

    end = track.n_frames if end is None else min(end, track.n_frames)
    config = settings_before(session, end)
    block = setting(config.tree, BLOCK_KEY) if config is not None else None
    if config is None or not isinstance(block, int) or not 0 < block < MAX_FRAMES:
        return None
    score_s = None
    first = max(config.first_frame, 0 if most is None else end - most)
    if end > first:
        sums = track.total_ns(first, end)
        scoring = sum(float(sums[CATEGORIES.index(name)]) for name in SCORING)
        score_s = scoring * 1e-9 / (end - first) * block
    first_net, net = (setting(c.tree, NET_KEY) for c in (session.configs[0], config))
    # The fact "scoring" is about the net that the session began with; each other one is found by its name.
    about = session.meta.get("scoring") if first_net == net else (session.meta.get("nets") or {}).get(net)
    context = (about or {}).get("context")
    return Latency(block, None if context is None else int(context[1]), score_s)


def of_both(config: Config, shown: Snapshot | None, chosen: bool) -> Latency:
    """The latency of `config`, measured if the session shown has the same settings; `chosen` as in `of_settings`."""
    measured = tree = None
    if shown is not None and shown.session.configs:
        end = shown.cursor_frame
        # At the end of a finished session it is the one in the report.
        most = LATEST_FRAMES if shown.live or end < shown.track.n_frames else None
        measured = of_session(shown.session, shown.track, end, most)
        force = settings_before(shown.session, end)
        tree = None if force is None else force.tree
    return of_settings(config, measured, tree, chosen)


def of_settings(
    config: Config, measured: Latency | None = None, tree: Mapping[str, Any] | None = None, chosen: bool = True
) -> Latency:
    """The latency of settings; `measured`, of a session with settings `tree`, counts where they agree.

    Unless a person has `chosen` the net, it is not opened: no path that a session names is before somebody runs it.
    """
    now = settings.to_dict(config)
    if measured is not None and tree is not None and all(tree.get(key) == now[key] for key in SCORED_BY):
        return measured
    if settings.unavailable_reason(config, NET_KEY):
        return Latency(config.block, 0 if config.model in MIXTURES else None, None)  # mixtures: one frame
    net, after = str(settings.get(config, NET_KEY)), None
    shipped = net in settings.option(NET_KEY).shipped()
    if shipped or chosen:
        # Frames after the one scored that a net looks at, as its card says.
        card = assets.path("nets", f"{net}.json") if shipped else Path(net).with_suffix(".json")
        with suppress(BadInput, ValueError):
            about = inputs.read_json(card, "the card of a net")
            after = about.get("right") if isinstance(about, dict) else None
    return Latency(config.block, after if isinstance(after, int) and 0 <= after < MAX_FRAMES else None, None)
