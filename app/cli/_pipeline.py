"""The arguments that describe a run, shared by the verbs that start one."""

from __future__ import annotations

import argparse
import atexit
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.cli import _output
from pipelines import config as settings
from pipelines.audio import formats
from pipelines.config import presets
from pipelines.config.presets import Preset
from profiler.errors import BadInput

if TYPE_CHECKING:
    from pipelines.run.playlist import Item
    from pipelines.run.request import Request
    from profiler.process.signals import Stop


MAX_REPEATS = 1_000_000
STANDARD_INPUT: Final = "-"
MOST: Final = 4 << 30  # Bytes that are taken: what never ends would fill the disk; 2 h of stereo in 32 bits are 2.8 GB
PIECE: Final = 1 << 20


def spooled(paths: Sequence[str], raw: str) -> list[str]:
    """`paths` with a temporary file in place of `-`, which holds standard input; `raw`: the setting `audio.raw`."""
    if STANDARD_INPUT not in paths:
        return list(paths)
    if paths.count(STANDARD_INPUT) > 1:
        raise BadInput("--audio names standard input (-) twice; it can be read once.")
    stream = None if sys.stdin is None else sys.stdin.buffer
    if stream is None or sys.stdin.isatty():
        raise BadInput(
            "--audio - reads sound from standard input, which is no pipe and no file here; "
            "for example: ffmpeg -i talk.m4a -f wav - | asrscope run --audio -."
        )
    folder = Path(tempfile.mkdtemp(prefix="asrscope-stdin-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / ("stdin.raw" if raw else "stdin")
    with file.open("wb") as kept:
        while piece := stream.read(PIECE):
            if kept.tell() + len(piece) > MOST:
                raise BadInput(f"Standard input holds more than {MOST:,} bytes; cut it into parts.")
            kept.write(piece)
        if not kept.tell():
            raise BadInput("Standard input is empty (0 bytes); sound is needed there.")
    return [str(file) if path == STANDARD_INPUT else path for path in paths]


def add_arguments(parser: argparse.ArgumentParser, repeat: bool = True) -> None:
    """Add --preset, --config, --set, --audio, --transcripts and, if `repeat`, --repeat."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--preset", metavar="NAME", help=f"a shipped configuration (default: {presets.DEFAULT})")
    source.add_argument("--config", metavar="FILE.toml", help="your own configuration file")
    help = "change one setting; can be repeated (`asrscope options` lists the keys)"
    _output.repeatable(parser, "--set", "key=value", help)
    _output.speech_flags(
        parser,
        f"audio files, folders or globs, or - for standard input: {formats.READ}, any rate and channels, joined files "
        "as well; raw sound by --set audio.raw=16000:s16le (default: the bundled synthetic voices)",
        "references: TSV or CSV with a header (file, transcript), JSON manifests, Kaldi text (with wav.scp and "
        "segments beside it), .trn, .transcription, .stm or .ctm; without --audio, the files named there are decoded",
    )
    parser.set_defaults(repeat=1)
    if repeat:
        _output.number_flag(parser, "--repeat", 1, MAX_REPEATS, "decode the files N times", 1)


def preset(arguments: argparse.Namespace) -> Preset:
    """The chosen preset or configuration file, with the --set assignments applied."""
    if arguments.config is not None:
        chosen = presets.from_file(arguments.config)
    else:
        # It loops for the window alone: nobody watches here, and a command is expected to end.
        chosen = presets.load(presets.DEFAULT if arguments.preset is None else arguments.preset)
        chosen = replace(chosen, config=settings.replace(chosen.config, "loop", False))
    assignments = dict(settings.parse_assignment(text) for text in arguments.set)
    return replace(chosen, config=settings.assign_with_folder(chosen.config, assignments))


def source(arguments: argparse.Namespace, preset: Preset) -> list[str]:
    """The arguments of another `asrscope run` with the same settings, started from any folder."""
    words = ["--preset", preset.name]
    if arguments.config is not None:
        words = ["--config", str(Path(arguments.config).absolute())]
    return words + [word for text in arguments.set for word in ("--set", text)]


def request(
    arguments: argparse.Namespace, preset: Preset, session: str | None = None, items: tuple[Item, ...] = ()
) -> Request:
    """What to run with the settings of `preset`, which are checked, and so are the names of the files to decode.

    `session`: how a session without --out is called; None: nothing is recorded. `items`: what is decoded instead of
    what the arguments name, if there is any.
    """
    from pipelines.run.request import Request
    from profiler.files.paths import new_session_path

    out = None
    if session is not None:
        out = Path(arguments.out) if arguments.out is not None else new_session_path(session)
    made = Request(
        config=preset.config,
        preset=preset.name,
        audio=tuple(arguments.audio),
        transcripts=arguments.transcripts,
        out=out,
        repeat=arguments.repeat,
        replace=session is not None and bool(arguments.out),
        items=items,
    )
    # Only now that the settings are valid: reading a pipe may take an hour.
    made = replace(made, audio=tuple(spooled(made.audio, made.config.audio.raw)))
    _ = made.playlist  # a wrong name is reported before anything slow is loaded
    return made


def check_place(session: Path, replace: bool) -> None:
    """BadInput where a session cannot be written: another run writes it, it is to stay, or there is no such folder."""
    from profiler.session.files import check_claim

    check_claim(session, replace=replace)
    if not (folder := session.absolute().parent).is_dir():
        raise BadInput(f"{session}: the folder {folder} does not exist; make it or choose another.")


def status(state: str, problems: Sequence[str], stop: Stop) -> int:
    """The exit status of a run that ended in `state`; what went wrong in it is said."""
    for problem in problems:
        _output.complain(problem)
    if problems or state in ("failed", "crashed"):
        return 2
    return stop.status if state == "stopped" else 0
