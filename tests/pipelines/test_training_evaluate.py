"""Word errors of nets: settings are the nets' alone, and a card remembers what was counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines.audio.word_errors import Count, count
from pipelines.config import Config
from pipelines.models import nets
from pipelines.models.nets import Layer
from pipelines.run import playlist
from pipelines.run.playlist import Item
from pipelines.training import __main__ as command
from pipelines.training import evaluate
from pipelines.training.corpus.data import Progress
from tests.pipelines.net_files import card, net, write


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The requested configurations; mixtures recognise all words, and nets all but one."""
    seen: list[Config] = []

    def hears(config: Config, items: Sequence[Item], name: str, progress: Progress) -> Count:
        seen.append(config)
        return count("one two three", "one two three" if config.model == "ptm" else "one two")

    monkeypatch.setattr(evaluate, "_decoded", hears)
    monkeypatch.setattr(playlist, "build", lambda audio, transcripts: playlist.Playlist([]))
    return seen


def test_settings_are_for_the_nets_and_the_card_keeps_every_count(
    decoded: list[Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, net(card(Layer(8), about={"date": "today"})))
    arguments = ["evaluate", str(path), "--audio", "somewhere", "--note"]
    assert command.main([*arguments, "plain"]) == 0
    assert command.main([*arguments, "skipping", "--set", "frames.skip=2"]) == 0
    assert [config.model for config in decoded] == ["ptm", "dnn"] * 2
    assert [config.frames.skip for config in decoded] == [1, 1, 1, 2]
    assert decoded[1].dnn.net == str(path)
    assert f"{path}: 1 error in 3 words (0.333)" in capsys.readouterr().out
    about = nets.load(path).card.about
    both = {"mixtures": [0, 3], str(path): [1, 3]}
    assert about == {"date": "today", "word_errors": {"plain": both, "skipping": both}}
    assert command.main([*arguments, "x", "--set", "frames.skip"]) == 2
    assert "must be key=value" in capsys.readouterr().err


def test_errors_as_json(decoded: list[Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, net(card(Layer(8), about={"recipe": {"frames": 7}})))
    assert command.main(["evaluate", str(path), "--audio", "somewhere", "--json"]) == 0
    taught, made = json.loads(capsys.readouterr().out)["nets"]
    assert taught == {"net": "mixtures", "mb": None, "frames": None, "errors": 0, "words": 3, "wer": 0.0}
    assert (made["net"], made["frames"], made["errors"]) == (str(path), 7, 1)
    assert made["mb"] == path.stat().st_size / 1e6
