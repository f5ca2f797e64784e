"""The campaign's clumsy hand on a few of its sessions; all of them are for `tests/bench/campaign`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

import app
from tests.bench.campaign import desk, window

pytestmark = pytest.mark.slow

PACKAGE = Path(app.__file__).parent

CHOSEN = (
    (f"every name is {window.LONG[:24]!r}",),
    ("every name is '\\x1b]0;title\\x07\\x1b[2J'", "no configuration"),
    ("words at (4294967295, 4294967295)", "a reference of 200 000 words", "spans: duration_ns = 0"),
    ("utterance.first_frame = 4294967295",),
    ("spans: first_frame = 65535",),
)
"""Changes of one session each; those of one do not hide each other."""


@pytest.fixture(scope="module")
def changes() -> dict[str, window.Change]:
    return dict(window.changes())


@pytest.mark.parametrize("names", CHOSEN, ids=lambda names: " + ".join(name[:30] for name in names))
def test_a_session_meant_badly_opens_or_is_refused(
    tmp_path: Path, changes: dict[str, Callable], names: tuple[str, ...]
) -> None:
    window.spoil([changes[name] for name in names], tmp_path)
    refused = desk.look_at(tmp_path / window.SESSION)
    assert refused is None or len(names) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 5000, b"SQLite format 3\0", None],
    ids=["empty", "zeros", "head", "cut"],
)
def test_what_is_no_session_is_refused_in_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "<img src='x'>\u202e.asrs".replace("/", "")
    path.write_bytes(window.base()[:9000] if content is None else content)
    reported = desk.look_at(path)
    assert reported is not None


def test_painters_of_widgets_end_whatever_happens() -> None:
    """One that is left open by an exception crashes the process when Qt paints the next time."""
    left_open = []
    for path in PACKAGE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        items = (item for node in nodes if isinstance(node, ast.With) for item in node.items)
        ended = {id(item.context_expr) for item in items}
        left_open += [
            f"{path.relative_to(PACKAGE)}:{node.lineno}"
            for node in nodes
            if isinstance(node, ast.Call)
            and getattr(node.func, "id", "") == "QPainter"
            and node.args
            and id(node) not in ended
        ]
    assert not left_open
