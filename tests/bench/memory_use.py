"""Growth of the memory of each component of a real run over hours of looped speech, per hour of audio.

python -m tests.bench.memory_use --hours 2
"""

import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import assets
from app.model import memory
from pipelines.config import presets
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from profiler.session.reader import Session
from tests.bench._rounds import command_line, printing


def recorded(audio: Sequence[Path], repeat: int = 1) -> dict[str, Any]:
    """The memory of a run over `audio` as a report has it (`app.model.memory.memory`), and its `hours` of audio."""
    config = presets.load("gmm-quick").config
    with tempfile.TemporaryDirectory(prefix="asrscope-memory-") as folder:
        out = Path(folder) / "run.asrs"
        request = Request(config, "gmm-quick", tuple(map(str, audio)), None, out, repeat)
        execute(request, Control(), lambda *_: None)
        with closing(Session.open(out)) as session:
            tree = memory.memory(session)
            assert tree is not None, "this system does not tell the memory of a process"
            return {**tree, "hours": sum(one.audio_s for one in session.utterances) / 3600}


def growth(audio: Sequence[Path], hours: float) -> dict[str, Any]:
    """Growth per hour over so much audio, as lists of MB: likely, low, high."""
    once = recorded(audio)["hours"]
    tree = recorded(audio, max(round(hours / once), 1))
    slopes = {"resident": tree["growth_bytes_per_audio_hour"]}
    slopes |= {name: one["growth_bytes_per_audio_hour"] for name, one in tree["components"].items()}
    mb = {
        name: None if slope is None else [round(slope[key] / 1e6, 3) for key in ("likely", "low", "high")]
        for name, slope in slopes.items()
    }
    return {"hours": round(tree["hours"], 3), "resident_mb": round(tree["resident_bytes"] / 1e6, 1), "growth_mb": mb}


if __name__ == "__main__":
    parser = command_line("memory_use", __doc__)
    parser.add_argument("--hours", type=float, default=2.0)
    speech = sorted(assets.path("speech").glob("*.flac"))
    sys.exit(printing(parser, lambda args: growth(speech, args.hours)))
