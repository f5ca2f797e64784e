"""Latency and its parts: of a session by its own spans and context, of settings by the card of their net."""

import json
import os
import sqlite3
from types import SimpleNamespace

import numpy as np
import pytest

import assets
from app.model import latency
from app.model.latency import Latency
from app.model.report import report
from app.model.report_lines import headline
from pipelines import config as settings
from pipelines.config import presets
from profiler.session.reader import Session


def tree(**changes):
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return settings.to_dict(settings.assign(presets.load("dnn").config, dotted))


def session(configs, about):
    configs = [SimpleNamespace(first_frame=first, tree=tree) for first, tree in configs]
    return SimpleNamespace(configs=configs, meta={"scoring": about})


class Track:
    """1 ms of compute, 2 of memory, 2 of neither, 1 of other programs, 4 of copying per frame; more of the rest."""

    n_frames = 300

    def total_ns(self, first, last):
        return np.array([1, 2, 2, 1, 4, 50, 60, 70], float) * 1e6 * (last - first)


ABOUT = {"senones": 5126, "context": [10, 7]}


def test_the_parts_are_block_context_and_scoring_of_the_block():
    found = latency.of_session(session([(0, tree(block=16))], ABOUT), Track())
    assert (found.block_frames, found.context_frames) == (16, 7)
    assert found.score_s == pytest.approx(16 * 0.009)
    assert found.total_s == pytest.approx(0.16 + 0.07 + 0.144)
    assert latency.texts(found.as_dict())[0] == ("latency 374 ms: 160 ms block + 70 ms context + 144 ms scoring")


def test_the_settings_in_force_at_the_playhead_count():
    changed = session([(0, tree(block=16)), (100, tree(block=1))], ABOUT)
    assert latency.of_session(changed, Track()).block_frames == 1
    assert latency.of_session(changed, Track(), 100).block_frames == 16
    assert latency.of_session(changed, Track(), 0).score_s is None


def test_what_is_not_known_is_left_out_and_the_whole_with_it(tmp_path):
    old = latency.of_session(session([(0, tree(block=16))], None), Track())
    assert old.context_s is None
    assert old.total_s is None
    assert latency.texts(old.as_dict())[0].startswith("latency over 304 ms: 160 ms block + 144 ms")
    assert latency.of_session(session([], ABOUT), Track()) is None
    # Another net than the first is known by what the session tells of it, not by its card.
    net = tmp_path / "other.safetensors"
    net.with_suffix(".json").write_text('{"right": 4}')
    other = session([(0, tree(block=16)), (50, tree(block=16, dnn__net=str(net)))], ABOUT)
    assert latency.of_session(other, Track()).context_frames is None
    other.meta["nets"] = {str(net): {"context": [2, 3]}}
    assert latency.of_session(other, Track()).context_frames == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_no_file_is_opened_because_a_session_names_it(window, finished, tmp_path):
    """A card that is a pipe would be waited for without end; one that is a file would be believed."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "file.json").write_text('{"right": 4}')
    w = window()
    w.open_session(finished)
    assert w.desk.form.fields[latency.BLOCK_KEY].note.full == "latency over 170 ms: 160 ms block + 9.6 ms scoring"
    for name in ("pipe", "file"):
        named = tree(block=16, dnn__net=str(tmp_path / f"{name}.safetensors"))
        with sqlite3.connect(finished) as connection:
            connection.execute("UPDATE config SET tree=?", (json.dumps(named),))
        connection.close()
        w.open_session(finished)
        note = w.desk.form.fields[latency.BLOCK_KEY].note
        assert w.pipeline.value(latency.NET_KEY) == named["dnn"]["net"]
        w.pipeline.edit()
        w.pipeline.set("block", 8)
        assert note.full == "latency over 80 ms: 80 ms block"
        w.playhead.close()
        assert note.full == "latency over 80 ms: 80 ms block"


def test_settings_take_the_context_from_the_card_and_the_time_from_a_session_alike(tmp_path):
    config = presets.load("dnn").config
    after = json.loads(assets.path("nets", "base.json").read_bytes())["right"]
    assert latency.of_settings(config) == Latency(16, after, None)
    assert latency.of_settings(presets.load("gmm").config) == Latency(16, 0, None)
    mine = tmp_path / "mine.onnx"
    named = settings.replace(config, "dnn.net", str(mine))
    assert latency.of_settings(named).context_frames is None
    mine.with_suffix(".json").write_text('{"right": 4}')
    assert latency.of_settings(named, chosen=False).context_frames is None
    assert latency.of_settings(named).context_frames == 4
    mine.with_suffix(".json").write_text("[]")
    assert latency.of_settings(named).context_frames is None
    measured = Latency(16, 9, 0.002)
    assert latency.of_settings(config, measured, tree()) is measured
    assert latency.of_settings(config, measured, tree(search__beam=9.0)) is measured
    assert latency.of_settings(config, measured, tree(block=1)).score_s is None


def test_the_report_has_latency_and_the_shares_really_done(finished):
    with Session.open(finished) as recorded:
        recorded.meta["scoring"] = {"senones": 10_000, "context": [0, 0]}
        found = report(recorded)
    # 16 frames of 0.6 ms each; of 10 000 senones 5 000 are scored and 90 asked for.
    assert found["latency"]["score_s"] == pytest.approx(16 * 0.6e-3)
    assert found["latency"]["total_s"] == pytest.approx(0.16 + 16 * 0.6e-3)
    shares = {"senones_scored": 0.5, "senones_asked": 0.009, "frames_copied": None}
    assert found["shares"] == pytest.approx(shares)
    assert found["latency_s"] is None, "of the words of a stream"
    page = "\n".join(headline(found))
    assert "latency 170 ms: 160 ms block + 9.6 ms scoring" in page
    assert "50.0% of the senones scored, 0.9% of the senones active" in page
    with Session.open(finished) as recorded:
        found = report(recorded)
    assert found["latency"]["total_s"] is None
    assert set(found["shares"].values()) == {None}
