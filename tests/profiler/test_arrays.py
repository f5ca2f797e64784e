"""What an array must be before compiled code touches it."""

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from profiler.arrays import ArrayError, check, check_indices, check_offsets
from profiler.plain import one_line, printable
from tests.each import each

ROWS = np.zeros((3, 4), np.float32)


def test_the_right_array_passes():
    check("x", ROWS, np.float32, (3, 4), writable=True)
    check("x", ROWS, np.float32, (None, 4))
    check("x", ROWS[:, :2], np.float32, (3, 2), contiguous=False)
    check("x", np.zeros((0, 4), np.float32), np.float32, (None, 4))
    check("x", np.array(1, np.float32), np.float32, ())


def frozen() -> np.ndarray:
    array = ROWS.copy()
    array.flags.writeable = False
    return array


@each(
    "array, message",
    [
        (ROWS.astype(np.float64), "holds float64, the kernel wants float32"),
        (ROWS.astype(">f4"), "holds >f4"),
        (ROWS[:2], r"shape \(2, 4\), the kernel wants \(3, 4\)"),
        (ROWS.ravel(), "shape"),
        (np.zeros((3, 8), np.float32)[:, ::2], "not contiguous"),
        (np.zeros((4, 3), np.float32).T, "not contiguous"),
        (np.zeros((3, 8), np.float32)[:, :4], "not contiguous"),
        (frozen(), "read-only"),
        (ROWS.tolist(), "is a list"),
    ],
)
def test_any_other_is_refused_by_name(array, message):
    with pytest.raises(ArrayError, match=f"^x .*{message}"):
        check("x", array, np.float32, (3, 4), writable=True)
    with pytest.raises(ArrayError, match="not contiguous"):
        check("x", np.zeros((3, 8), np.float32)[:, ::2], np.float32, (3, 4), contiguous=False)


@each("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_indices_lie_below_the_limit(dtype):
    check_indices("i", np.array([0, 4], dtype), 5)
    check_indices("i", np.array([], dtype), 0)
    with pytest.raises(ArrayError, match="only 0 to 3"):
        check_indices("i", np.array([0, 4], dtype), 4)
    with pytest.raises(ArrayError, match="holds -1 to 2"):
        check_indices("i", np.array([2, -1]), 4)


@each("starts", [[], [1, 4], [0, 3], [0, 5], [0, 3, 2, 4]])
def test_offsets_rise_from_nought_to_the_end(starts):
    check_offsets("s", np.array([0, 2, 2, 4]), 4)
    with pytest.raises(ArrayError, match="from 0 to 4"):
        check_offsets("s", np.array(starts, np.int64), 4)


def test_offsets_without_a_sign_do_not_hide_a_fall():
    with pytest.raises(ArrayError):
        check_offsets("s", np.array([0, 3, 2, 4], np.uint32), 4)


# -- text of strangers -----------------------------------------------------------------------------


ANY_TEXT = st.text(st.characters(), max_size=400)


@given(ANY_TEXT)
@example("\x1b]0;title\x07\u202egnp.exe\udcff\x9b2J\r\n\u2028\ue000")
def test_nothing_hidden_is_left_and_it_can_be_encoded(text):
    shown = printable(text)
    assert not any(unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" for c in shown)
    shown.encode("utf-8")
    assert printable(shown) == shown


@given(ANY_TEXT, st.integers(10, 300))
@example("x" * 100_000, 200)
@example("\x00" * 5000, 20)
def test_one_line_keeps_to_its_length(text, limit):
    shown = one_line(text, limit)
    assert len(shown) <= limit
    assert shown.splitlines() in ([shown], [])
    if text.isprintable():
        assert shown == text or (len(text) > limit and shown[0] == text[0])
        assert shown[-1:] == text[-1:]


def test_what_is_to_be_kept_is_kept():
    assert printable("a\tb\nc\rd", keep="\n\t") == "a\tb\nc\\rd"
    for text in ("größer", "日本 語", "a\u00a0b", "Привет", "עברית"):
        assert printable(text) == text
