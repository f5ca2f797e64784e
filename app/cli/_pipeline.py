"""The arguments that describe a run, shared by the verbs that start one."""

from __future__ import annotations

import argparse
from dataclasses import replace

from app.cli import _output, _stdin
from pipelines import config as settings
from pipelines.audio import suffixes
from pipelines.config import presets
from pipelines.config.presets import Preset

MAX_REPEATS = 1_000_000


def add_arguments(parser: argparse.ArgumentParser, repeat: bool = True) -> None:
    """Add --preset, --config, --set, --audio, --transcripts and, if `repeat`, --repeat."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--preset", metavar="NAME", help=f"a shipped configuration (default: {presets.DEFAULT})"
    )
    source.add_argument("--config", metavar="FILE.toml", help="your own configuration file")
    parser.add_argument(
        "--set",
        metavar="key=value",
        action="append",
        default=[],
        help="change one setting; can be repeated (`asrscope options` lists the keys)",
    )
    parser.add_argument(
        "--audio",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="audio files, folders or globs, or - for standard input: "
        f"{suffixes.READ}, any rate and channels, joined files as well; raw sound by "
        "--set audio.raw=16000:s16le (default: the bundled synthetic voices)",
    )
    parser.add_argument(
        "--transcripts",
        metavar="FILE",
        help="references: TSV or CSV with a header (file, transcript), Kaldi text (with wav.scp and segments beside "
        "it), .trn, .transcription, .stm or .ctm; without --audio, the files that these name are decoded",
    )
    if repeat:
        parser.add_argument(
            "--repeat",
            metavar="N",
            type=_output.whole_number(1, MAX_REPEATS),
            default=1,
            help="decode the files N times",
        )
    else:
        parser.set_defaults(repeat=1)


def preset(arguments: argparse.Namespace) -> Preset:
    """The chosen preset or configuration file, with the --set assignments applied.

    A shipped preset loops for the window alone: nobody watches here, and a command is expected to end. The files to
    decode are checked as well, so that a wrong name is reported before anything is loaded.
    """
    if arguments.config is not None:
        chosen = presets.from_file(arguments.config)
    else:
        chosen = presets.load(presets.DEFAULT if arguments.preset is None else arguments.preset)
        chosen = replace(chosen, config=settings.replace(chosen.config, "loop", False))
    assignments = dict(settings.parse_assignment(text) for text in arguments.set)
    config = settings.check(settings.assign(chosen.config, assignments))
    from pipelines.run import playlist

    arguments.audio = _stdin.spooled(arguments.audio, config.audio.raw)
    playlist.build(arguments.audio, arguments.transcripts, config.audio)
    return Preset(chosen.name, chosen.title, chosen.description, config)
