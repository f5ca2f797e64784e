"""A share of the campaign of hostile inputs: models, nets and caches of strangers (all of it: tests/bench/campaign)."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from pipelines.config import Config, assign
from pipelines.models import nets, opening
from pipelines.models.onnx import graph as onnx
from profiler.errors import BadInput
from tests.bench.campaign import caches, models
from tests.bench.campaign import nets as net_attacks

SEED = random.randrange(1 << 30)


@pytest.mark.parametrize("damage", models.DAMAGES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", models.FILES)
def test_a_model_is_opened_or_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: models.Damage
) -> None:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    models.damaged(tmp_path, name, damage, SEED)
    config = assign(Config(), {"model_directory": str(tmp_path / "model"), "gmm.components": 8})
    said = ""
    try:
        opening.open_model(assign(config, {"model": "continuous"}))
    except BadInput as problem:
        said = str(problem)
    assert "\n" not in said, SEED
    assert len(said) < 800, SEED


CHEAP = ("sound", "card_value", "card_text", "no_file", "spoiled", "long_header", "all_zero",
         "graph_sound", "graph_spoiled", "by_values", "elsewhere", "subgraph", "shapes")  # fmt: skip


@pytest.mark.parametrize("name", CHEAP)
def test_a_net_is_read_or_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    """Read in this process; what only its bounds can stop is tried in `test_models_foreign`."""
    make = getattr(net_attacks, name)
    if make in net_attacks.GRAPHS:
        pytest.importorskip("onnx")
    read = onnx.load if make in net_attacks.GRAPHS else nets.load
    suffix = ".onnx" if make in net_attacks.GRAPHS else ".safetensors"
    for turn in range(8):
        place = tmp_path / str(turn)
        place.mkdir()
        make(place, random.Random(SEED + turn))
        said = ""
        try:
            read(place / f"made{suffix}", net_attacks.SENONES, 39)
        except BadInput as problem:
            said = str(problem)
        assert "\n" not in said, SEED
        assert len(said) < 1000, SEED
        assert not (name.endswith("sound") and said)


@pytest.fixture(scope="module")
def heard() -> list[str]:
    return caches.clean()[1]


def test_the_clean_cache_holds_every_kind(heard: list[str]) -> None:
    kinds = {path.parent.name for path in caches.files(caches.clean()[0])}
    assert kinds == {"graphs", "models", "selection"}
    assert heard[0]


@pytest.mark.parametrize("turn", range(5))
def test_a_damaged_cache_gives_the_same_words(tmp_path: Path, heard: list[str], turn: int) -> None:
    rng = random.Random(SEED + turn)
    damage = rng.choice(caches.DAMAGES)
    caches.damaged(tmp_path, rng.randrange(99), damage, rng.randrange(99))
    assert caches.words(tmp_path / caches.CACHE) == heard, (damage.__name__, SEED)


@pytest.mark.parametrize("damage", caches.DAMAGES, ids=lambda d: d.__name__)
def test_no_damaged_file_is_read(tmp_path: Path, heard: list[str], damage: caches.Damage) -> None:
    """Each kind of file, without running."""
    from profiler.files import cache

    for which in range(len(caches.files(caches.clean()[0]))):
        place = tmp_path / str(which)
        place.mkdir()
        caches.damaged(place, which, damage, SEED)
        unread = 0
        for path in (place / caches.CACHE).rglob("*.kept"):
            twin = caches.clean()[0] / path.relative_to(place / caches.CACHE)
            with contextlib.suppress(cache.CacheError):
                found, whole = cache.read(path), cache.read(twin)
                assert found.about == whole.about, SEED
                for name, array in whole.arrays.items():
                    assert found.arrays[name].tobytes() == array.tobytes(), SEED
                continue
            unread += 1
        # Not every file has such a shape; the owner may read what nobody may; a kind may have one file.
        perhaps = (caches.smaller_shape, caches.unreadable, caches.swapped)
        assert unread == 1 or (damage in perhaps and not unread), SEED
