"""The campaign's clumsy hand on a few of its sessions; all of them are for `tests/bench/campaign`."""

import ast
from pathlib import Path

import pytest

import app
from tests.bench.campaign import desk, sessions
from tests.bench.campaign.mutate import LONG

pytestmark = pytest.mark.slow

PACKAGE = Path(app.__file__).parent

CHOSEN = (
    f"every name is {LONG[:24]!r}",
    "every name is '\\x1b]0;title\\x07\\x1b[2J'",
    "words far away",
    "spans of no time",
    "all in the last frame",
)


@pytest.mark.parametrize("name", CHOSEN, ids=lambda name: name[:30])
def test_a_session_meant_badly_opens_or_is_refused(tmp_path, name):
    sessions.spoiled(name, tmp_path)
    refused = desk.look_at(tmp_path / sessions.SESSION)
    assert (refused is not None) == (name == CHOSEN[0])


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 5000, b"SQLite format 3\0", None], ids=["empty", "zeros", "head", "cut"]
)
def test_what_is_no_session_is_refused_in_one_sentence(tmp_path, content):
    path = tmp_path / "<img src='x'>\u202e.asrs".replace("/", "")
    path.write_bytes(sessions.full()[:9000] if content is None else content)
    reported = desk.look_at(path)
    assert reported is not None


def test_painters_of_widgets_end_whatever_happens():
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
