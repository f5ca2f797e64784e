"""`asrscope mcp`, queried by the reference client over standard input and output."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import here
from sample_session import write_sample

SERVER = (sys.executable, "-P", "-m", "app.cli.main", "mcp")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sessions").mkdir()
    for name in ("one", "two"):
        write_sample(tmp_path / "sessions" / f"{name}.asrs", frames=512)
    return tmp_path / "sessions"


def test_the_reference_client_reads_sessions(folder):
    # Here: it takes two seconds to import, which every process of the tests would spend.
    import anyio
    from mcp import ClientSession, StdioServerParameters, stdio_client

    outside = write_sample(folder.parent / "outside.asrs", frames=512)
    answers: dict[str, object] = {}

    async def talk() -> None:
        command, *words = (*SERVER, str(folder))
        server = StdioServerParameters(command=command, args=words)
        async with stdio_client(server) as streams, ClientSession(*streams) as client:
            await client.initialize()
            answers["tools"] = {tool.name for tool in (await client.list_tools()).tools}
            for name, tool, given in (
                ("sessions", "sessions", {}),
                ("report", "report", {"session": "one.asrs"}),
                ("compare", "compare", {"a": "one.asrs", "b": "two.asrs"}),
                ("predict", "predict", {"session": "one.asrs", "factors": {"search": 0.5}}),
                ("words", "words", {"session": "two.asrs", "longest": 2}),
                ("outside", "report", {"session": f"../{outside.name}"}),
                ("absolute", "report", {"session": str(outside)}),
            ):
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


HUGE = 64 << 20


def test_a_hostile_folder_and_hostile_calls_get_sentences(folder):
    """Names that no path can have, factors that are none, a dead link in the folder, and a message of 64 MiB."""
    (folder / "dead.asrs").symlink_to("nowhere")
    (folder / "elsewhere.asrs").symlink_to(write_sample(folder.parent / "outside.asrs", frames=512))
    (folder / "folder.asrs").mkdir()
    os.mkfifo(folder / "pipe.asrs")
    calls = [
        *(("report", {"session": name}) for name in (*NAMES, *(link.name for link in folder.glob("[defp]*.asrs")))),
        *(("predict", {"session": "one.asrs", "factors": {"scoring": factor}}) for factor in (math.nan, -1, 1e308)),
        ("words", {"session": "one.asrs", "longest": -1}),
        ("sessions", {}),
    ]
    lines = [
        {"method": "initialize", "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": ME}},
        *({"method": "tools/call", "params": {"name": name, "arguments": given}} for name, given in calls),
        {"method": "tools/call", "params": {"name": "report", "arguments": {"session": "x" * HUGE}}},
        {"method": "tools/list"},
    ]
    with subprocess.Popen([*SERVER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        answers = list[dict]()
        for number, line in enumerate(lines):
            # The number last, as the reference client writes it, or first.
            tree = {**line, "jsonrpc": "2.0", "id": number} if number % 2 else {"jsonrpc": "2.0", "id": number, **line}
            server.stdin.write(json.dumps(tree) + "\n")
            server.stdin.flush()
            answers.append(json.loads(server.stdout.readline()))
            if number == 0:
                server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        peak = int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{server.pid}/status").read_text())[1])  # type: ignore[index]
        server.stdin.close()
        assert server.wait() == 0
    assert [answer["id"] for answer in answers] == list(range(len(lines)))
    results = [answer["result"] for answer in answers]
    for (name, given), result in zip(calls[:-1], results[1:], strict=False):
        (part,) = result["content"]
        assert result["isError"], (name, given)
        wanted = {"report": "is no session in", "predict": "a number from 0 to", "words": "of words from 0"}[name]
        assert wanted in part["text"]
        assert len(part["text"]) < 600
    assert sorted(json.loads(part["text"])["name"] for part in results[-3]["content"]) == ["one.asrs", "two.asrs"]
    assert "a message of more than 1,048,576 bytes is not read" in results[-2]["content"][0]["text"]
    assert len(results[-1]["tools"]) == 5
    assert peak < 300_000  # kB; 64 MiB are some 600 MB in the library's hands


LONG = ("x" * 5000 + ".asrs", "a/" * 3000 + "x.asrs", "x" * 1_000_000)
NAMES = ("base.asrs\0", "\0", "", ".", *LONG, "/dev/zero", "\x1b[31m")
ME = {"name": "test", "version": "1"}


def test_a_folder_that_is_none_is_refused(tmp_path):
    done = subprocess.run([*SERVER, str(tmp_path / "none")], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not a folder" in done.stderr
