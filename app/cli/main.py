"""Entry point of `asrscope`: finds the verb, runs it and handles every outcome.

Exit status: 0; 1 for a fault of the program, with one sentence that says where the details are; 2 for bad input, with
one sentence; 128 + N after signal N. `--debug` shows the traceback for 1 and 2.
"""

import argparse
import ast
import contextlib
import faulthandler
import importlib
import inspect
import os
import pkgutil
import re
import sys
import tempfile
import textwrap
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

import app.cli
from app.cli import _output
from profiler.errors import BadInput
from profiler.plain import one_line
from profiler.process import limits, numba_settings, signals

FOLDER: Final = "crashes"
KEPT: Final = 20  # Maximum number of reports; the oldest are removed


def fault(problem: BaseException, words: Sequence[str]) -> str:
    """Write a report on `problem`, raised by the command line `words`; one sentence on both."""
    from app.crash_report import compose

    when = f"{time.strftime('%Y-%m-%d %H:%M:%S %z')}\ncommand: {' '.join(one_line(word) for word in words)}"
    report = compose(when, details="".join(traceback.format_exception(problem)))
    sentence = f"A fault of the program: {type(problem).__name__}"
    if str(problem):
        sentence += f" ({one_line(str(problem)).rstrip('.')})"
    for folder in (_folder, tempfile.gettempdir):
        with contextlib.suppress(OSError):
            handle, name = tempfile.mkstemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), suffix=".txt", dir=folder())
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(report)
            return f"{sentence}; the details are in {one_line(name)}."
    return f"{sentence}; --debug shows the details."


def _folder() -> Path:
    from profiler.files.paths import cache_dir

    folder = cache_dir(FOLDER)
    for old in sorted(folder.glob("*.txt"))[: -KEPT + 1]:
        with contextlib.suppress(OSError):
            old.unlink()
    return folder


FAULT = 1
USAGE_ERROR = 2
INTERRUPTED = 130


class UsageError(BadInput):
    """Arguments that no verb takes."""


class Parser(argparse.ArgumentParser):
    """Raises usage errors like any other bad input."""

    def error(self, message: str) -> NoReturn:
        """UsageError with `message` and where the help is."""
        # "argument --repeat: must be …": the name alone begins the sentence.
        said = message.removeprefix("argument ").replace(": must be", " must be", 1).rstrip(".")
        raise UsageError(f"{said}; `{self.prog} --help` lists the options.")


def verbs() -> dict[str, ModuleType]:
    """The verbs by name: the modules in this folder."""
    names = [m.name for m in pkgutil.iter_modules(app.cli.__path__)]
    return {
        name: importlib.import_module(f"app.cli.{name}")
        for name in sorted(names)
        if name != "main" and not name.startswith("_")
    }


def about(module: ModuleType) -> str:
    """The help of a verb: its docstring, read from the source if Python dropped it (-OO); examples are indented."""
    text = module.__doc__ or ast.get_docstring(ast.parse(inspect.getsource(module))) or ""
    return re.sub(r"^(?=asrscope )", "    ", textwrap.dedent(text).strip(), flags=re.MULTILINE)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="asrscope",
        description="A live profiler for speech recognisers: where does the time go?",
        epilog="Without a verb the window opens: `asrscope`, or `asrscope SESSION.asrs`.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="verb", metavar="VERB")
    for name, module in verbs().items():
        text = about(module)
        command = commands.add_parser(
            name, help=text.partition("\n")[0], description=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.arguments(command)
        command.add_argument("--debug", action="store_true", help="show the traceback of errors")
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run `asrscope` with `argv`; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    with _output.printable_output(), signals.raising(), _output.warnings_in_sentences():
        if not faulthandler.is_enabled():
            faulthandler.enable(sys.__stderr__ or 2)
        try:
            status = _run(words)
            sys.stdout.flush()
            return status
        except KeyboardInterrupt as stop:
            _output.complain("stopped.")
            return stop.status if isinstance(stop, signals.Ended) else INTERRUPTED
        except BrokenPipeError:  # standard output goes to `head`, which has read enough
            return _output.BROKEN_PIPE
        except Exception as problem:
            sentence = limits.shortage(problem)
            if not sentence and isinstance(problem, BadInput | OSError):
                sentence = limits.sentence(problem)
            if "--debug" in words:
                traceback.print_exception(problem)
            else:  # if nothing was short, it is a fault of the program and is reported as one
                _output.complain(sentence or fault(problem, words))
            return USAGE_ERROR if sentence else FAULT


def _run(words: list[str]) -> int:
    limits.check()
    if not words or (words[0] not in verbs() and not words[0].startswith("-")):
        words = ["open", *words]
    # argparse would hand on an empty list for it.
    if nothing := next((word for word in words if re.fullmatch(r"--[\w-]+=--", word)), None):
        raise UsageError(f"{nothing.partition('=')[0]} needs a value, not '--'.")
    try:
        arguments, unknown = _parser().parse_known_args(words)
    except SystemExit as end:  # --help
        return int(end.code or 0)
    if unknown or arguments.verb is None:
        said = f"unrecognized arguments: {' '.join(unknown)}" if unknown else "a verb is required"
        help_of = " ".join(["asrscope", *filter(None, [arguments.verb]), "--help"])
        raise UsageError(f"{said}; `{help_of}` lists the options.")
    numba_settings.check_environment()
    return int(arguments.run(arguments) or 0)


if __name__ == "__main__":
    raise SystemExit(main())
