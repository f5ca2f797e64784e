"""Text of strangers, made fit to be shown."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from profiler.plain import one_line, printable

ANY_TEXT = st.text(st.characters(), max_size=400)


@given(ANY_TEXT)
@example("\x1b]0;title\x07\u202egnp.exe\udcff\x9b2J\r\n\u2028\ue000")
def test_nothing_hidden_is_left_and_it_can_be_encoded(text: str) -> None:
    shown = printable(text)
    assert not any(unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" for c in shown)
    shown.encode("utf-8")
    assert printable(shown) == shown


@given(ANY_TEXT, st.integers(10, 300))
@example("x" * 100_000, 200)
@example("\x00" * 5000, 20)
def test_one_line_keeps_to_its_length(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert len(shown) <= limit
    assert shown.splitlines() in ([shown], [])
    if text.isprintable():
        assert shown == text or (len(text) > limit and shown[0] == text[0])
        assert shown[-1:] == text[-1:]


def test_what_is_to_be_kept_is_kept() -> None:
    assert printable("a\tb\nc\rd", keep="\n\t") == "a\tb\nc\\rd"
    for text in ("größer", "日本 語", "a\u00a0b", "Привет", "עברית"):
        assert printable(text) == text
