"""A scripted worker: speaks the real one's lines and writes a real session, with no recogniser.

python window_worker.py [error] [refuse] [giveup] [noise] [slow] [late] [short] [chatty] [empty] [dies]
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from window_recording import Recording

from profiler.session.facts import COMPILING

MODES = set(sys.argv[1:])


def say(event: str, **values: object) -> None:
    print(json.dumps({"event": event, **values}), flush=True)


class Scripted:
    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None
        self.recording: Recording | None = None

    def run(self, command: dict) -> None:
        say("progress", stage="building graph: determinise", fraction=0.25)
        if "slow" in MODES and self.stopping.wait(30):
            say("finished", session=None, state="stopped")
            return
        if "error" in MODES:
            say("error", message="nosuch.wav cannot be read: no such file.", session=None)
            return
        recording = self.recording = Recording(Path(command["out"]), command["preset"])
        if MODES & {"empty", "dies"}:
            say("running", session=command["out"])
            if "dies" in MODES:
                time.sleep(0.3)  # the window opens it
                os._exit(7)
            recording.close("failed")
            say("error", message="There is no such model.", session=command["out"])
            return
        if "late" not in MODES:
            recording.write(20)
        say("running", session=command["out"])
        if "late" in MODES:
            say("progress", stage="measuring the machine", fraction=0.5)
            self.stopping.wait(1.0)
        say("progress", stage="decoding", fraction=None)
        last = 200 if "short" in MODES else 100_000
        while recording.frames < last and not self.stopping.is_set():
            recording.write(20)
            time.sleep(0.02)
        state = "stopped" if self.stopping.is_set() else "closed"
        recording.close(state)
        say("finished", session=command["out"], state=state)
        if "chatty" in MODES:
            say("progress", stage="still here", fraction=None)
            say("running", session="ghost.asrs")
            say("error", message="A ghost complains.", session=None)
            say("finished", session=command["out"], state=state)

    def mark(self, kind: str, text: str) -> None:
        self.recording.writer.marker(kind, text, self.recording.frames)

    def obey(self, command: dict) -> None:
        what = command["do"]
        if what == "start":
            self.stopping.clear()
            self.thread = threading.Thread(target=self.run, args=(command,))
            self.thread.start()
        elif what == "set":
            if "refuse" in MODES:
                text = f"{command['key']} cannot be changed just now."
                say("refused", key=command["key"], message=text)
            elif self.recording is not None:
                text = f"{command['key']}={command['value']}"
                self.mark("option", text)
                if "giveup" in MODES:
                    self.mark("note", f"{COMPILING} {command['key']}")
                    self.mark("error", f"{text} could not be made ready: there is no such net.")
        elif what == "mark" and self.recording is not None:
            self.mark("user", command["text"])
        elif what == "stop":
            self.stopping.set()

    def follow(self) -> None:
        if "noise" in MODES:
            print("OpenBLAS: a library speaks where it should not", flush=True)
            print("the last words", file=sys.stderr, flush=True)
        say("ready")
        for line in sys.stdin:
            command = json.loads(line)
            if command["do"] == "quit":
                break
            self.obey(command)
        self.stopping.set()
        if self.thread is not None:
            self.thread.join()


Scripted().follow()
