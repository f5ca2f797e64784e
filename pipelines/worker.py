"""The worker process: runs pipelines for a window that must never wait, and outlives none of its mistakes.

Commands come as JSON lines on stdin, status goes as JSON lines to stdout; measurements go into the session file.

    {"do": "start", "config": {…}, "preset": "gmm", "audio": […], "transcripts": null, "out": "a.asrs"}
    {"do": "set", "key": "frames.skip", "value": 2}    {"do": "mark", "text": "here"}
    {"do": "compare", "with": {"gmm.selection.enabled": false}}    {"do": "compare", "with": null}
    {"do": "stop"}    {"do": "quit"}

    {"event": "ready"}    {"event": "progress", "stage": "reading the acoustic model", "fraction": null}
    {"event": "running", "session": "a.asrs"}    {"event": "finished", "session": "a.asrs", "state": "closed"}
    {"event": "refused", "key": "model", "message": "…"}    {"event": "error", "message": "…", "session": null}

With PIPE, the named pipe that is its stdin (open for reading and writing, so that whoever sends commands may come and
go), it does one run, ends with it and removes the pipe.
"""

import contextlib
import faulthandler
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from pipelines import config as settings
from pipelines.run.control import Control
from profiler.errors import BadInput
from profiler.plain import one_line
from profiler.process import limits, numba_settings, signals
from profiler.process.children import read_arguments

QUIT: Final = b'{"do": "quit"}\n'
PATIENCE_S: Final = 0.5
"""For a run to notice that it is to stop; then its session is closed without it, since the window waits."""


class Worker:
    """Follows commands; at most one run at a time, in a thread of its own."""

    def __init__(self, answers: IO[str]) -> None:
        self._answers = answers
        self._answering = threading.Lock()
        self._control: Control | None = None
        self._thread: threading.Thread | None = None
        self._busy = threading.Event()

    def say(self, event: str, **values: Any) -> None:
        """Send a message to the window."""
        line = json.dumps({"event": event, **values})
        # A window that is gone hears nothing, and the session is to be closed properly all the same.
        with self._answering, contextlib.suppress(OSError, ValueError):
            self._answers.write(line + "\n")
            self._answers.flush()

    def follow(self, commands: IO[str]) -> None:
        """Obey `commands` until they end; a window that is gone is a request to stop."""
        self.say("ready")
        for line in commands:
            try:
                command = json.loads(line)
                if command["do"] == "quit":
                    break
                self._obey(command)
            except (KeyError, TypeError, RecursionError, json.JSONDecodeError) as problem:
                self.say("error", message=f"Not a command: {one_line(line)} ({problem}).", session=None)
            except BadInput as problem:
                self.say("refused", key=command.get("key"), message=str(problem))

    def end(self) -> bool:
        """Stop a run that is going on, and see to it that its session is closed.

        Whether the thread of a run that prepares goes on, as when it compiles: then only `os._exit` ends the process.
        """
        if self._control is None or self._thread is None:
            return False
        self._control.stop()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            self._control.opening.acquire()  # a session is not opened any more
            if (give_up := self._control.give_up) is not None:
                give_up()
                return True
            self._control.opening.release()
            self._thread.join()
        return False

    def _obey(self, command: dict[str, Any]) -> None:
        what, control = command["do"], self._control
        if what == "start":
            self._start(command)
        elif what not in ("set", "mark", "compare", "stop"):
            raise KeyError(what)
        elif control is None:
            return
        elif what == "set":
            control.ask(command["key"], command["value"])
        elif what == "mark":
            control.mark(command["text"])
        elif what == "stop":
            control.stop()
        elif command["with"] is None:
            control.stop_comparing()
        else:
            control.compare(command["with"])

    def _start(self, command: dict[str, Any]) -> None:
        if self._busy.is_set():
            self.say("error", message="A run is going on; stop it before starting another.", session=None)
            return
        self._busy.set()
        control = self._control = self.new_control()
        self._thread = threading.Thread(target=self._run, args=(command, control), name="decode")
        self._thread.start()

    def _run(self, command: dict[str, Any], control: Control) -> None:
        session: str | None = None
        state: str | None = None

        def running(path: Path | None) -> None:
            nonlocal session
            session = str(path)
            self.say("running", session=session)

        try:
            numba_settings.check_environment()
            sentences, state = self.execute(command, control, running)
        except (BadInput, OSError) as problem:
            sentences = [limits.sentence(problem)]
        except Exception as problem:  # whatever it was, the worker stays for the next run
            traceback.print_exc(file=sys.stderr)
            sentences = [
                limits.shortage(problem) or f"The run failed through a fault of the program: {one_line(repr(problem))}."
            ]
        # Before the last word: whoever hears it may ask for the next run at once.
        self._busy.clear()
        for sentence in sentences:
            self.say("error", message=sentence, session=session)
        if state:
            self.say("finished", session=session, state=state)

    def new_control(self) -> Control:
        return Control()

    def progress(self, stage: str, fraction: float | None) -> None:
        self.say("progress", stage=stage, fraction=fraction)

    def execute(
        self, command: dict[str, Any], control: Control, running: Callable[[Path | None], None]
    ) -> tuple[list[str], str]:
        """Do what a `start` command says; returns a sentence for each problem, and how it ended.

        Raises BadInput or OSError for what makes it impossible.
        """
        control.give_up = lambda: None  # until there is a session
        # Loading the recogniser takes a second or two; the worker answers "ready" before.
        from pipelines.run.request import Request
        from pipelines.run.session_run import execute

        request = Request(
            config=settings.from_dict(command["config"], where="the window's settings"),
            preset=str(command.get("preset", "")),
            audio=tuple(command.get("audio", ())),
            transcripts=command.get("transcripts"),
            out=Path(command["out"]),
            repeat=int(command.get("repeat", 1)),
            chosen=bool(command.get("chosen", True)),
        )
        outcome = execute(request, control, self.progress, running)
        return [*outcome.result.refused, *filter(None, [outcome.problem])], outcome.state


class Detached(Worker):
    """The worker of a run that no link keeps alive (`asrscope record`): it ends with its run."""

    def _run(self, command: dict[str, Any], control: Control) -> None:
        try:
            super()._run(command, control)
        finally:
            os.write(sys.__stdin__.fileno(), QUIT)  # type: ignore[union-attr]


def main(kind: Callable[[IO[str]], Worker] = Worker) -> int:
    """Run a worker on stdin and stdout until a quit command or a signal; returns the exit status."""
    if not faulthandler.is_enabled():
        faulthandler.enable()
    answers = sys.stdout
    sys.stdout = sys.stderr  # whatever a library prints must not look like an answer
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    worker = kind(answers)
    status = 0
    with signals.raising():
        try:
            worker.follow(sys.stdin)
        except signals.Ended as ended:
            status = ended.status
        finally:
            busy = worker.end()
        if busy:
            os._exit(status)
    return status


if __name__ == "__main__":
    pipes = [Path(name) for name in read_arguments("pipelines.worker", __doc__, "PIPE?")]
    try:
        raise SystemExit(main(Detached if pipes else Worker))
    finally:
        for pipe in pipes:
            pipe.unlink(missing_ok=True)
