"""The live view and the replay show the same numbers, on a real run with both toggles flipped."""

import threading
import time
from dataclasses import replace
from typing import Any

from views_desk import figures_of, numbers

from app.model.scope import boundaries, marks
from app.views.cost_model import cost_model
from app.views.work import work_model
from pipelines.config import assign, presets
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from profiler.analysis.attribution import Attribution
from profiler.analysis.track import CostTrack
from profiler.session.reader import Session
from tests.pipelines.whole_runs import compiled
from tests.waiting import PATIENCE_S

COLUMNS = 400
VISIBLE = (0.0, 6.0)


class Toggles(Control):
    """Flips both tricks while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[tuple[int, str, Any]] = [(100, "gmm.selection.enabled", True), (200, "frames.skip", 2)]

    @property
    def stopping(self) -> bool:
        while self.left and self.frame >= self.left[0][0]:
            self.ask(*self.left.pop(0)[1:])
        return super().stopping


def models(session: Session, track: CostTrack, frame: int) -> list[Any]:
    """What the views of numbers would draw with the playhead at `frame`, but for what a run still waits for."""
    desk = figures_of(session, track, frame, (0, frame))
    pairs = {
        keys: pair and replace(pair, missing=None, follows=False, lacking=False) for keys, pair in desk.pairs.items()
    }
    return [
        numbers(cost_model(session, track, frame, VISIBLE, COLUMNS)),
        numbers(work_model(session, track, frame, VISIBLE, COLUMNS)),
        numbers(replace(desk, costs=None, pairs=pairs)),
        numbers((marks(session, frame, track.n_frames), boundaries(session, frame))),
    ]


def test_live_and_replay_show_the_same_numbers(bundled_speech, tmp_path, monkeypatch, short_runs):
    path = tmp_path / "run.asrs"
    # What scoring consists of is judged by all that is known at the time, and so by more in the replay.
    monkeypatch.setattr(Attribution, "of", lambda *_, **__: None)
    config = assign(presets.load("gmm-quick").config, {"pace": 4.0, "replay": 0.0})
    compiled(config, *({key: value} for _, key, value in Toggles().left))
    audio = (str(bundled_speech / "01-slt-morning.flac"),)
    request = Request(config, "gmm-quick", audio, None, path)
    started = threading.Event()
    run = threading.Thread(target=execute, args=(request, Toggles(), lambda *_: None, lambda _: started.set()))
    run.start()
    assert started.wait(PATIENCE_S)
    seen: dict[int, list[Any]] = {}
    read_anew: dict[int, int] = {}
    with Session.open(path) as live:
        track = CostTrack()
        while run.is_alive() or live.state == "recording":
            if not live.refresh():
                time.sleep(0.005)
                continue
            track.update(live)
            # A frame the run has passed for good: the last block may still lack its leaves.
            frame = track.n_frames - 32
            if frame > 0 and len(live.markers) == len([m for m in live.markers if m.epoch]):
                seen.setdefault(frame, models(live, track, frame))
                read_anew.setdefault(frame, track.generation)
        run.join()
        track.update(live)
        whole = models(live, track, track.n_frames)
        frames = track.n_frames
    assert seen
    with Session.open(path) as session:
        track = CostTrack()
        track.update(session)
        assert track.n_frames == frames
        assert models(session, track, frames) == whole
        assert len(session.markers) == 2
        # What was on the screen in the middle of the run is what the replay shows there.
        last_change = max(m.applied_frame or 0 for m in session.markers)
        latest = max(read_anew.values())
        compared = [f for f in seen if f > last_change and read_anew[f] == latest]
        assert compared
        for frame in compared:
            assert models(session, track, frame) == seen[frame], frame
