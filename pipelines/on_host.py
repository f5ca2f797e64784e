"""The worker of runs on the machine HOST: a window starts it like pipelines.worker, and gives it the same commands.

It starts each run there (`asrscope record`), follows it into the session file here, and passes the commands on.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO

from pipelines import config as settings
from pipelines import worker
from pipelines.config import Config, Value, presets
from pipelines.run.control import Control
from profiler.process.children import read_arguments
from profiler.remote import link


class RemoteControl(Control):
    """Checks requests here, and takes them to the run there."""

    def __init__(self) -> None:
        super().__init__()
        self.steering = link.Steering()

    def ask(self, key: str, value: Value) -> None:
        super().ask(key, value)
        self.steering.send({"do": "set", "key": key, "value": value})

    def compare(self, other: Mapping[str, Value]) -> None:
        super().compare(other)
        self.steering.send({"do": "compare", "with": dict(other)})

    def stop_comparing(self) -> None:
        self.steering.send({"do": "compare", "with": None})

    def mark(self, text: str) -> None:
        self.steering.send({"do": "mark", "text": text})

    def stop(self) -> None:
        super().stop()
        self.steering.stop()


class OnHost(worker.Worker):
    """Runs on one machine."""

    def __init__(self, host: link.Host, answers: IO[str]) -> None:
        super().__init__(answers)
        self._host = host

    def new_control(self) -> Control:
        return RemoteControl()

    def execute(
        self, command: dict[str, object], control: Control, running: Callable[[Path | None], None]
    ) -> tuple[list[str], str]:
        """Run there and follow; OSError for what makes it impossible or ends it."""
        assert isinstance(control, RemoteControl)
        tree, out = command["config"], Path(str(command["out"]))
        assert isinstance(tree, dict)
        control.config = settings.from_dict(tree, where="the window's settings")
        self.progress(f"reaching {self._host.name}", None)
        started = link.record(self._host, words(control.config, command))
        problems: list[str] = []
        following = link.Following(
            self._host,
            started.session,
            out,
            steering=control.steering,
            message=partial(self._pass_on, problems),
            progress=lambda sentence: self.progress(sentence, None),
            made=lambda: running(out),
        )
        state = following.run()
        return problems, state

    def _pass_on(self, problems: list[str], message: dict[str, object]) -> None:
        """Pass on a message of the run there; what went wrong is said at its end."""
        match message:
            case {"event": "progress", "stage": str(stage), "fraction": float() | None as fraction}:
                self.progress(stage, fraction)
            case {"event": "refused", "key": str(key), "message": str(text)}:
                self.say("refused", key=key, message=text)
            case {"event": "error", "message": str(text)}:
                problems.append(text)


def words(config: Config, command: Mapping[str, object]) -> list[str]:
    """The arguments of `asrscope record` for a `start` command: the preset, and the active settings that differ."""
    preset = str(command.get("preset"))
    preset = preset if preset in presets.names() else presets.DEFAULT
    base = settings.replace(presets.load(preset).config, "loop", False)  # as the command line takes it
    found = [f"--preset={preset}"]
    for key in (option.key for option in settings.options()):
        value = settings.get(config, key)
        if value != settings.get(base, key) and settings.unavailable_reason(config, key) is None:
            found.append(f"--set={key}={settings.value_text(value)}")
    audio = command.get("audio") or ()
    assert isinstance(audio, list | tuple)
    found += [f"--audio={name}" for name in audio]
    return found + ([f"--transcripts={command['transcripts']}"] if command.get("transcripts") else [])


if __name__ == "__main__":
    (name,) = read_arguments("pipelines.on_host", __doc__, "HOST")
    raise SystemExit(worker.main(partial(OnHost, link.ssh(name))))
