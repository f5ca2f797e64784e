"""A crash report as text that can be copied, of bounded length: a crashing process may print megabytes."""

import platform
import sys
from collections import deque
from typing import Final

from profiler.plain import one_line

MAX_LINES: Final = 300  # The crash dump of the interpreter has about twenty lines for each of a dozen threads
LONGEST_LINE: Final = 400  # The dump's last line lists every extension module
LONGEST_PIECE: Final = 1 << 16  # Maximum bytes kept of an unfinished line
FATAL: Final = "Fatal Python error"  # How the interpreter's dump begins
LINES_BEFORE: Final = 20  # Lines kept of the output before it


class LastWords:
    """The last lines of what a process writes to its standard error, which comes in pieces."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._rest = b""
        self._fatal = False

    def clear(self) -> None:
        self._lines.clear()
        self._rest, self._fatal = b"", False

    def add(self, data: bytes) -> None:
        """Add new output; an unfinished last line waits for its end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-LONGEST_PIECE:]
        for line in lines:
            self.add_line(line)

    def add_line(self, line: bytes) -> None:
        """Add a whole line, of this source or another."""
        text = one_line(line.decode("utf-8", "replace").rstrip(), LONGEST_LINE)
        if not text.strip():
            return
        if text.startswith(FATAL) and not self._fatal:
            before = list(self._lines)[-LINES_BEFORE:]
            self._lines.clear()
            self._lines.extend(before)
            self._fatal = True
        # If a dump is longer than what is kept, its beginning counts: it says what happened, and where.
        if not (self._fatal and len(self._lines) == MAX_LINES):
            self._lines.append(text)

    @property
    def text(self) -> str:
        rest = [one_line(self._rest.decode("utf-8", "replace"), LONGEST_LINE)] if self._rest else []
        return "\n".join([*self._lines, *rest])


def compose(message: str, session: str | None = None, details: str = "") -> str:
    """Return a report: the sentence shown, the session concerned, the versions, and stacks or last words."""
    # Reading what is installed takes a tenth of the start of the window.
    from profiler.machine.describe import own_version

    qt = getattr(sys.modules.get("PySide6"), "__version__", None)
    versions = [f"asrscope {own_version()}", f"Python {platform.python_version()}", f"Qt for Python {qt}" if qt else ""]
    parts = [message, f"session: {one_line(session, LONGEST_LINE)}" if session else ""]
    parts.append(", ".join(filter(None, (*versions, platform.platform()))))
    return "\n".join([*filter(None, parts), *(["", details] if details else [])])
