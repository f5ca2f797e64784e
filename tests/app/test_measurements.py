"""Tables of a page that commands print: each has one place, is written there again alike, and nothing else moves."""

import json
from typing import Any

import pytest

from profiler.errors import BadInput
from tests.bench import measurements
from tests.bench._rounds import markdown, printed
from tests.bench.measurements import Entry, places, replaced, table
from tests.each import each

PAGE = (
    "# Title\r\n\nBy hand, with | a bar.\n"
    "<!-- measured: one -->\nold\n<!-- end -->\n"
    "between\t \n<!-- measured: two-b -->\n<!-- end -->\nlast line without an end"
)
KNOWN = ("one", "two-b", "absent")


@each(
    "old, new",
    [
        ("two-b", "other"),
        ("two-b", "one"),
        ("old\n<!-- end -->\n", "old\n<!-- ende -->\n"),
        ("<!-- measured: one -->", "<!-- measured one -->"),
        ("an end", "an end\n<!-- end -->\n"),
    ],
)
def test_markers_that_are_wrong_are_refused(old: str, new: str) -> None:
    with pytest.raises(BadInput, match="Markers of the page"):
        places(PAGE.replace(old, new), KNOWN)


def test_a_table_is_written_again_alike_and_all_else_stays() -> None:
    found = places(PAGE, KNOWN)
    assert {name: PAGE[slice(*ends)] for name, ends in found.items()} == {"one": "old\n", "two-b": ""}
    once = replaced(PAGE, "one", "| new |\n", KNOWN)
    assert once == PAGE.replace("old\n", "| new |\n")
    assert replaced(once, "one", "| new |\n", KNOWN) == once
    both = replaced(once, "two-b", "x\n", KNOWN)
    assert replaced(replaced(both, "two-b", "", KNOWN), "one", "old\n", KNOWN) == PAGE
    with pytest.raises(BadInput, match="no place for 'absent'"):
        replaced(PAGE, "absent", "", KNOWN)


def test_a_table_as_markdown() -> None:
    assert markdown(("a", "b|c"), [(1, "x\ny")]) == "| a | b\\|c |\n| --- | --- |\n| 1 | x y |\n"
    with pytest.raises(ValueError, match="columns"):
        markdown(("a", "b"), [(1,)])


def test_rows_of_json_as_a_table() -> None:
    tree = {"rows": [{"a": {"b": 1.2345}, "c": [True, None]}, {"other": 1}], "named": {"x": {"c": {"d": 2}}}, "e": "f"}
    assert table([tree], (), "rows", "a.b", "c") == markdown(("a b", "c"), [("1.23", "yes, –")])
    assert table([tree], (), "named", "c") == markdown(("", "c"), [("x", "d: 2")])
    assert table([tree, tree], ("p", "q"), "", "e") == markdown(("", "e"), [("p", "f"), ("q", "f")])
    assert table([tree["named"]["x"]], (), "") == markdown(("figure", "value"), [("c", "d: 2")])
    with pytest.raises(LookupError):
        table([tree], (), "rows", "absent")


def _entry(name: str, content: object, **more: Any) -> Entry:
    text = json.dumps(json.dumps(content))
    return Entry(name, (f"python -c 'print({text})'",), (("", "figure"),), more.pop("upto_s", 1.0), **more)


def test_what_fails_keeps_its_table_and_the_others_are_written(tmp_path, capsys, monkeypatch):
    def missing() -> None:
        raise BadInput("There is no speech.")

    entries = (
        _entry("one", {"figure": 1}, needs=missing),
        _entry("two", {"other": 2}),
        _entry("three", {"figure": 3}),
        _entry("slow", {"figure": 4}, upto_s=121.0),
    )
    page = tmp_path / "page.md"
    before = "".join(f"<!-- measured: {e.name} -->\nold\n<!-- end -->\n" for e in entries)
    page.write_text(before, encoding="utf-8")
    monkeypatch.setattr(measurements, "ENTRIES", entries)
    monkeypatch.setattr(measurements, "PAGE", page)
    assert measurements.main(["--out", str(page)]) == 1
    reported = capsys.readouterr().err
    for text in ("one is left as it was: There is no speech.", "two is left as it was", "(--only NAME): slow."):
        assert text in reported
    now = page.read_text(encoding="utf-8")
    shown = {name: now[slice(*ends)] for name, ends in places(now, [e.name for e in entries]).items()}
    assert shown["one"] == shown["two"] == shown["slow"] == "old\n"
    assert "| 3 |" in shown["three"]
    assert entries[2].commands[0] in shown["three"]
    other = tmp_path / "other.md"
    assert measurements.main(["--only", "slow", "--out", str(other)]) == 0
    assert page.read_text(encoding="utf-8") == now
    assert "| 4 |" in other.read_text(encoding="utf-8")


def test_a_command_gets_what_its_names_stand_for() -> None:
    (tree,) = printed(
        """python -c 'import sys, json; print(json.dumps(sys.argv[1:]))' SESSION --x=EMPTY""", {"SESSION": "a b"}, ["c"]
    )
    assert tree == ["a b", "--x=EMPTY", "c"]
    with pytest.raises(BadInput, match="failed: "):
        printed("python -c 'raise SystemExit(3)'", {})
    with pytest.raises(BadInput, match="not JSON"):
        printed("python -c 'print(1, 2, chr(120))'", {})


def test_the_page_has_one_place_for_every_entry() -> None:
    page = measurements.PAGE.read_bytes().decode("utf-8")
    names = [entry.name for entry in measurements.ENTRIES]
    assert len(set(names)) == len(names)
    assert list(places(page, names)) == names
