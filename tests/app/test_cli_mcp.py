"""`asrscope mcp`, queried by the reference client over standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from command_line import here
from mcp import ClientSession, StdioServerParameters, stdio_client
from sample_session import write_sample

SERVER = (sys.executable, "-P", "-m", "app.cli.main", "mcp")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sessions").mkdir()
    for name in ("one", "two"):
        write_sample(tmp_path / "sessions" / f"{name}.asrs", frames=512)
    return tmp_path / "sessions"


def test_the_reference_client_reads_sessions(folder: Path) -> None:
    outside = write_sample(folder.parent / "outside.asrs", frames=512)
    answers: dict[str, object] = {}

    async def talk() -> None:
        command, *words = (*SERVER, str(folder))
        server = StdioServerParameters(command=command, args=words)
        async with stdio_client(server) as streams, ClientSession(*streams) as client:
            await client.initialize()
            answers["tools"] = {tool.name for tool in (await client.list_tools()).tools}
            for name, given in (
                ("sessions", {}),
                ("report", {"session": "one.asrs"}),
                ("compare", {"a": "one.asrs", "b": "two.asrs"}),
                ("predict", {"session": "one.asrs", "factors": {"search": 0.5}}),
                ("words", {"session": "two.asrs", "longest": 2}),
                ("outside", {"session": f"../{outside.name}"}),
                ("absolute", {"session": str(outside)}),
            ):
                tool = name if name not in ("outside", "absolute") else "report"
                answers[name] = await client.call_tool(tool, given)

    anyio.run(talk)

    def answer(name: str) -> dict:
        result = answers[name]
        assert not result.is_error, result
        return json.loads(result.content[0].text)

    assert answers["tools"] == {"sessions", "report", "compare", "predict", "words"}
    listed = [json.loads(part.text)["name"] for part in answers["sessions"].content]
    assert sorted(listed) == ["one.asrs", "two.asrs"]
    report = json.loads(here("report", folder / "one.asrs", "--json").stdout)["sessions"][0]
    assert answer("report") == report
    both = folder / "one.asrs", folder / "two.asrs"
    tree = json.loads(here("compare", *both, "--json").stdout)
    charts = {"frame_times", "roofline"}
    assert answer("compare") == {key: tree[key] for key in tree.keys() - charts}
    assert answer("predict")["predicted_rtf"] < answer("predict")["rtf"]
    assert len(answer("words")["rows"]) == 2 < answer("words")["of"]
    for name in ("outside", "absolute"):
        assert answers[name].is_error
        assert "is no session in" in answers[name].content[0].text


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([*SERVER, str(tmp_path / "none")], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not a folder" in done.stderr
