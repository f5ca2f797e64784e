"""Entry point of `asrscope`: finds the verb, runs it, and turns bad input into one sentence and exit status 2."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import textwrap
from collections.abc import Sequence
from types import ModuleType

import app.cli
from profiler.errors import BadInput

USAGE_ERROR = 2
INTERRUPTED = 130


def verbs() -> dict[str, ModuleType]:
    """The verbs by name: the modules beside this one."""
    names = [m.name for m in pkgutil.iter_modules(app.cli.__path__)]
    return {
        name: importlib.import_module(f"app.cli.{name}")
        for name in sorted(names)
        if name != "main" and not name.startswith("_")
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="asrscope",
        description="A live profiler for speech recognisers: where does the time go?",
        epilog="Without a verb it opens the window: `asrscope`, or `asrscope SESSION.asrs`.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="verb", metavar="VERB")
    for name, module in verbs().items():
        text = textwrap.dedent(module.__doc__ or "").strip()
        command = commands.add_parser(
            name,
            help=text.splitlines()[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.arguments(command)
        command.add_argument(
            "--debug", action="store_true", help="show the traceback when something goes wrong"
        )
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run `asrscope` with `argv`; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or (words[0] not in verbs() and not words[0].startswith("-")):
        words = ["open", *words]
    arguments = _parser().parse_args(words)
    try:
        status: int = arguments.run(arguments)
    except KeyboardInterrupt:
        print("asrscope: stopped.", file=sys.stderr)
        return INTERRUPTED
    except (BadInput, OSError) as problem:
        if arguments.debug:
            raise
        print(f"asrscope: {problem}", file=sys.stderr)
        return USAGE_ERROR
    return status


if __name__ == "__main__":
    raise SystemExit(main())
