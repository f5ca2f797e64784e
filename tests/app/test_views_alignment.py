"""Word alignment against jiwer's error counts."""

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.views.alignment import (
    DELETED,
    INSERTED,
    MAX_CELLS,
    SAME,
    SUBSTITUTED,
    align,
    count,
)

words = st.lists(
    st.sampled_from(["the", "a", "cat", "sat", "on", "mat", "dog", "ran"]), max_size=14
)


@given(words.filter(bool), words)
@settings(max_examples=200, deadline=None)
def test_as_many_errors_as_jiwer_counts(said: list[str], heard: list[str]) -> None:
    pairs = align(said, heard)
    assert pairs is not None
    truth = jiwer.process_words([" ".join(said)], [" ".join(heard)])
    found = count(pairs)
    assert found.errors == truth.substitutions + truth.deletions + truth.insertions
    assert found.said == len(said)
    assert [p.said for p in pairs if p.said is not None] == list(range(len(said)))
    assert [p.heard for p in pairs if p.heard is not None] == list(range(len(heard)))
    for pair in pairs:
        if pair.kind == SAME:
            assert said[pair.said] == heard[pair.heard]  # type: ignore[index]


def test_kinds_and_places() -> None:
    pairs = align(["a", "b", "c", "d"], ["a", "x", "c", "d", "e"])
    assert pairs is not None
    assert [p.kind for p in pairs] == [SAME, SUBSTITUTED, SAME, SAME, INSERTED]
    pairs = align(["a", "b", "c"], ["a", "c"])
    assert pairs is not None
    assert [p.kind for p in pairs] == [SAME, DELETED, SAME]


@given(words, st.integers(0, 14))
@settings(max_examples=60, deadline=None)
def test_a_partial_hypothesis_deletes_nothing_that_is_still_to_come(
    said: list[str], cut: int
) -> None:
    pairs = align(said, said[:cut], partial=True)
    assert pairs is not None
    assert count(pairs).errors == 0


def test_case_and_punctuation_do_not_count() -> None:
    pairs = align(["Hello,", "World’s", "“end”."], ["hello", "world’s", "END"])
    assert pairs is not None
    assert count(pairs).errors == 0


def test_too_long_is_refused_not_slow() -> None:
    many = ["w"] * int(MAX_CELLS**0.5 + 2)
    assert align(many, many) is None


@pytest.mark.parametrize(("said", "heard"), [([], []), ([], ["a"]), (["a"], [])])
def test_empty_sides(said: list[str], heard: list[str]) -> None:
    pairs = align(said, heard)
    assert pairs is not None
    assert len(pairs) == len(said) + len(heard)
