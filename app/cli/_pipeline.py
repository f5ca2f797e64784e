"""The arguments that describe a run, shared by the verbs that start one."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from pipelines import config as settings
from pipelines import presets
from pipelines.config import ConfigError
from pipelines.presets import Preset

if TYPE_CHECKING:
    from pipelines.control import Control

STOPPED = 130
"""Exit status after Ctrl+C, as shells have it."""


def add_arguments(parser: argparse.ArgumentParser, repeat: bool = True) -> None:
    """Add --preset, --config, --set, --audio, --transcripts and, where it means something, --repeat."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--preset", metavar="NAME", help=f"a shipped configuration (default: {presets.DEFAULT})"
    )
    source.add_argument("--config", metavar="FILE.toml", help="a configuration of your own")
    parser.add_argument(
        "--set",
        metavar="key=value",
        action="append",
        default=[],
        help="change one setting; may be given again (`asrscope options` lists the keys)",
    )
    parser.add_argument(
        "--audio",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="audio files, folders or globs (default: the bundled synthetic voices)",
    )
    parser.add_argument(
        "--transcripts",
        metavar="FILE.tsv",
        help="what was said: file<TAB>transcript, with a header",
    )
    if repeat:
        parser.add_argument(
            "--repeat", metavar="N", type=int, default=1, help="decode the files N times"
        )
    else:
        parser.set_defaults(repeat=1)


def preset(arguments: argparse.Namespace) -> Preset:
    """The preset or configuration file asked for, with the --set assignments applied."""
    if arguments.repeat < 1:
        raise ConfigError(f"--repeat wants a whole number from 1, and not {arguments.repeat}.")
    if arguments.config:
        chosen = presets.from_file(arguments.config)
    else:
        chosen = presets.load(arguments.preset or presets.DEFAULT)
    assignments = dict(settings.parse_assignment(text) for text in arguments.set)
    config = settings.check(settings.assign(chosen.config, assignments))
    return Preset(chosen.name, chosen.title, chosen.description, config)


@contextmanager
def stopped_by_interrupt(control: Control) -> Iterator[None]:
    """Ctrl+C asks `control` to stop after the block being decoded; a second one is not patient."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        control.stop()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
