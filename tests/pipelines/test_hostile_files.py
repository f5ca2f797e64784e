"""A share of the campaign of hostile inputs: models, nets and caches of strangers (all of it: tests/bench/campaign)."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from tests.bench.campaign import caches

SEED = random.randrange(1 << 30)


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return caches.clean()[1]


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(5))
def test_a_damaged_cache_gives_the_same_words(tmp_path: Path, expected: list[str], turn: int) -> None:
    rng = random.Random(SEED + turn)
    damage = rng.choice(caches.DAMAGES)
    caches.damaged(tmp_path, rng.randrange(99), damage, rng.randrange(99))
    assert caches.words(tmp_path / caches.CACHE) == expected, (damage.__name__, SEED)


@pytest.mark.slow
@pytest.mark.parametrize("damage", caches.DAMAGES, ids=lambda d: d.__name__)
def test_no_damaged_file_is_read(tmp_path: Path, expected: list[str], damage: caches.Damage) -> None:
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
