"""A share of the campaign of hostile inputs: models, nets and caches of strangers (all of it: tests/bench/campaign)."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from tests.bench.campaign import models, mutate
from tests.bench.campaign.models import CACHE, CACHE_DAMAGES

SEED = random.randrange(1 << 30)


def damaged(place: Path, which: int, damage: mutate.Damage, seed: int) -> None:
    """A cache in `place` of which one file (by its number) is damaged."""
    files = models.cached()
    models.copied(place, "")
    damage(place / files[which % len(files)], random.Random(seed))


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return models.clean()[1]


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(5))
def test_a_damaged_cache_gives_the_same_words(tmp_path: Path, expected: list[str], turn: int) -> None:
    rng = random.Random(SEED + turn)
    damage = rng.choice(CACHE_DAMAGES)
    damaged(tmp_path, rng.randrange(99), damage, rng.randrange(99))
    assert models.words(tmp_path / CACHE) == expected, (damage.__name__, SEED)


@pytest.mark.slow
@pytest.mark.parametrize("damage", CACHE_DAMAGES, ids=lambda d: d.__name__)
def test_no_damaged_file_is_read(tmp_path: Path, expected: list[str], damage: mutate.Damage) -> None:
    """Each kind of file, without running."""
    from profiler.files import cache

    for which in range(len(models.cached())):
        place = tmp_path / str(which)
        place.mkdir()
        damaged(place, which, damage, SEED)
        unread = 0
        for path in (place / CACHE).rglob("*.kept"):
            twin = models.clean()[0] / path.relative_to(place / CACHE)
            with contextlib.suppress(cache.CacheError):
                found, whole = cache.read(path), cache.read(twin)
                assert found.about == whole.about, SEED
                for name, array in whole.arrays.items():
                    assert found.arrays[name].tobytes() == array.tobytes(), SEED
                continue
            unread += 1
        # A kind may have one file; one that is gone is not looked for here.
        perhaps = (models.swapped, mutate.missing)
        assert unread == 1 or (damage in perhaps and not unread), SEED
