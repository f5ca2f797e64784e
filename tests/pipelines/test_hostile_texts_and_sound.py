"""A share of the campaign of hostile inputs: spoiled sound files and texts, given to what reads them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.audio import transcripts
from pipelines.config import presets
from pipelines.frontend.parameters import SAMPLE_RATE
from pipelines.models import dictionary
from pipelines.models.language import arpa, lm_bin
from pipelines.run import playlist
from pipelines.search.graph import grammar
from pipelines.search.graph.sources import read_grammar, read_language_model
from profiler.errors import BadInput
from profiler.plain import printable
from tests.bench.campaign.attack import Attack
from tests.bench.campaign.kinds import KINDS
from tests.each import each

SHARE = 50


def mutations(kind: str, seed: int) -> list[Attack]:
    """Those made on purpose have tests of their own."""
    found = (a for a in KINDS[kind].attacks(kind, random.Random(seed)) if " mutated by " in a.name)
    return list(islice(found, SHARE))


def problem_of(use: Callable[[], object]) -> str:
    """What was said of the input, one short printable line; empty where it was read."""
    try:
        use()
    except BadInput as problem:
        said = str(problem)
    else:
        return ""
    assert printable(said) == said
    assert len(said) < 600
    assert said.endswith(".")
    return said


def listen(paths: tuple[str, ...]) -> None:
    for item in playlist.build(paths, None).items:
        sound = audio.load(item.path)
        assert sound.samples.dtype == np.float32
        assert np.isfinite(sound.samples).all()
        assert 0 < len(sound.samples) <= audio.LONGEST_S * SAMPLE_RATE


def say(path: str) -> None:
    grammar.acceptor(read_grammar(path), lambda word: 1 + ord(word.text[0]))


def read(command: tuple[str, ...]) -> None:
    """Read what `command` names, by what reads it in a run."""
    given = dict(pairwise(command))
    if "--config" in given:
        presets.from_file(given["--config"])
    if "--transcripts" in given:
        transcripts.read(given["--transcripts"])
    readers: dict[str, Callable[[str], object]] = {
        "graph.grammar": say,
        "graph.dictionary": dictionary.read,
        "graph.language_model": lambda path: read_language_model(path, 2),
    }
    for name, word in pairwise(command):
        if name == "--set":
            key, value = settings.parse_assignment(word)
            readers[key](str(value))


@each("seed", range(1))
def test_spoiled_sound_is_read_or_refused_in_a_sentence(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for number, attack in enumerate(mutations("audio", seed)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        attack.make(folder)
        (command,) = attack.commands
        paths = command[command.index("--audio") + 1 :]
        said.append(problem_of(partial(listen, paths)))
    assert len(said) == SHARE
    assert any(said)
    assert not all(said)


@each("seed", range(1))
def test_spoiled_texts_are_read_or_refused_in_a_sentence(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for number, attack in enumerate(mutations("texts", seed)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        attack.make(folder)
        (command,) = attack.commands
        said.append(problem_of(partial(read, command)))
    assert len(said) == SHARE
    assert any(said)
    assert not all(said)


READERS: dict[str, Callable[[Path], object]] = {
    "preset": presets.from_file,
    "transcripts": transcripts.read,
    "dictionary": dictionary.read,
    "grammar": read_grammar,
    "language model": lambda path: read_language_model(path, 2),
    "arpa": arpa.read,
    "lm.bin": lm_bin.read,
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_what_is_no_file_or_never_ends_is_refused_at_once(read: Callable[[Path], object], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path, said in (
        (tmp_path / "pipe", "pipe or a device"),
        (tmp_path / "link", "pipe or a device"),
        (Path("/dev/zero"), "pipe or a device"),
        (tmp_path, "folder"),
        (tmp_path / "none", "no such file"),
    ):
        assert said in problem_of(partial(read, path))
