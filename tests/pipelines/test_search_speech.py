"""Human speech through small grammars, from samples to words."""

import pytest

from pipelines.config import presets
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.null_writer import NullWriter
from pipelines.run.recogniser import build
from profiler.spans import NullLane, Recorder


@pytest.mark.parametrize(
    ("preset", "names"),
    [
        ("digits", ["digits-2934z.flac"]),
        pytest.param("cards", ["cards-001.flac", "cards-002.flac", "cards-003.flac"], marks=pytest.mark.slow),
    ],
)
def test_small_grammars_hear_every_word(shared_audio, preset, names):
    paths = [str(shared_audio / name) for name in names]
    items = playlist.build(paths, str(shared_audio / "transcripts.tsv")).items
    config = presets.load(preset).config
    recogniser = build(config, Recorder(), NullLane(), lambda *_: None, lambda: False)
    decoder = Decoder(recogniser, Recorder(), NullLane(), NullWriter(), Control())
    done = decoder.run(items).utterances
    assert [utterance.hypothesis for utterance in done] == [item.reference for item in items]
    assert recogniser.search.complete
