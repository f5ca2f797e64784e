"""A whole run with a derived continuous model: words, stages and what the session says of the model."""

from pipelines.config import assign, presets
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from profiler.session.reader import Session


def test_a_run_on_the_untied_model(bundled_speech, tmp_path):
    quick = presets.load("gmm-quick").config
    config = assign(quick, {"model": "continuous", "gmm.components": 24, "threads": 2})
    out = tmp_path / "run.asrs"
    audio = (str(bundled_speech / "08-kal16-short.flac"),)
    outcome = execute(
        Request(config, "test", audio, None, out, 1), Control(), lambda title, fraction: None
    )
    assert outcome.state == "closed"
    assert outcome.result.utterances[0].hypothesis == "yes of course"
    with Session.open(out) as session:
        (origin,) = session.meta["acoustic_models"]
        assert "24 Gaussians per senone and stream, untied from the ptm model en-us" in origin
        stages = {stage.id: stage.name for stage in session.stages.values()}
        spans = session.spans
        names = {stages[int(number)] for number in set(spans["stage"].tolist())}
        assert {"score.gaussians", "score.lse", "score.wait"} <= names
        blocks = sum(stages[int(n)] == "decode.block" for n in spans["stage"])
        scored = sum(stages[int(n)].startswith("score.") for n in spans["stage"])
        # Of thousands of tiles two spans a block, and one at each end for the other thread.
        assert scored == 4 * blocks
