"""`run --partials`: lines in a pipe, in the order and with the texts that the session has."""

import json
import os
import subprocess
import time

import pytest

from app.model import word_latency
from profiler.process import children
from profiler.session.reader import Session

SETTINGS = ("pace=1", "stream.chunk_ms=160", "graph.vocabulary=1000")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are those of Unix")
def test_partial_results_arrive_in_a_pipe_when_the_session_says(bundled_speech, tmp_path):
    """How close the times are is for a person to see; here no line is from another run or utterance."""
    pipe, out, speech = tmp_path / "partials", tmp_path / "run.asrs", bundled_speech / "08-kal16-short.flac"
    os.mkfifo(pipe)
    words = ["run", "--preset", "gmm-quick", "--audio", str(speech), "--out", str(out), "--partials", str(pipe)]
    words += [word for setting in SETTINGS for word in ("--set", setting)]
    child = subprocess.Popen(
        children.python("-m", "app.cli.main", *words), stdout=subprocess.DEVNULL, env=children.environment()
    )
    seen = []
    with pipe.open(encoding="utf-8") as lines:
        for line in lines:
            now, shown = time.perf_counter_ns(), json.loads(line)
            seen.append((now, shown["utterance"], shown["chunk"]))
    assert child.wait() == 0
    with Session.open(out) as session:
        about = {one.name: session.meta[f"stream/{one.id}"] for one in session.utterances}
        later = [(now - about[name]["origin_ns"] - about[name]["shown_ns"][chunk]) * 1e-6 for now, name, chunk in seen]
        tree = word_latency.as_dict(session)
    assert len(later) >= 2
    assert all(-5e3 < ms < 60e3 for ms in later)
    assert tree is not None
    assert str(tree["sentence"]).startswith("Largest part: ")
