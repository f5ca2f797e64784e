"""Aligning a path's phones with the pronunciations of its words."""

from types import SimpleNamespace

import numpy as np
import pytest

from pipelines.search.words import align

SIL, NOISE = 0, 1
# Word 0: "a b"; word 1: "a b c" or "c"; word 2: "b".
PRONUNCIATIONS = [[(2, 3)], [(2, 3, 4), (4,)], [(3,)]]


@pytest.fixture
def graph():
    flat = [p for word in PRONUNCIATIONS for p in word]
    return SimpleNamespace(
        filler=np.array([True, True, False, False, False]),
        pron_first=np.cumsum([0, *[len(w) for w in PRONUNCIATIONS]]),
        phone_first=np.cumsum([0, *[len(p) for p in flat]]),
        pron_phones=np.array([phone for p in flat for phone in p]),
    )


@pytest.mark.parametrize(
    ("phones", "words", "spans"),
    [
        ([], [], []),
        ([2, 3], [0], [(0, 2)]),
        ([SIL, 2, 3, SIL, NOISE, 3, SIL], [0, 2], [(1, 3), (5, 6)]),
        # The other pronunciation of word 1 leaves a phone that word 2 needs.
        ([2, 3, 4, 3], [0, 1, 2], [(0, 2), (2, 3), (3, 4)]),
        ([2, 3, 4, 3], [1, 2], [(0, 3), (3, 4)]),
        # Cut inside the last word, before it, and after more phones than words.
        ([2, 3, 2], [0, 0], [(0, 2), (2, 3)]),
        ([2, 3, SIL], [0, 0], [(0, 2), (3, 3)]),
        ([2, 3, 4, 3], [0], [(0, 2)]),
    ],
)
def test_align(graph, phones, words, spans):
    assert align(graph, phones, words) == spans


def test_disagreement_is_noticed(graph):
    assert align(graph, [4, 4], [0]) is None
    assert align(graph, [SIL, 3, 3], [2, 0]) is None
