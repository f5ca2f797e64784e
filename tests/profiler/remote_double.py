"""Another machine, as a program that takes the words after `ssh HOST`: its links drop after a number of bytes.

python remote_double.py PLAN "asrscope tail FILE --from POSITION"

PLAN holds a number per line, of which each link takes the first: bytes after which it drops; without one, it lasts.
"""

import os
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from profiler.remote import send


def main(plan: Path, command: str) -> None:
    program, verb, session, option, position = shlex.split(command)
    assert (program, verb, option) == ("asrscope", "tail", "--from")
    first, *rest = [*plan.read_text().split(), ""]
    plan.write_text("\n".join(filter(None, rest)))
    left = int(first) if first else 1 << 40

    def write(data: bytes) -> None:
        nonlocal left
        os.write(1, data[:left])
        left -= len(data[:left])
        if not left:
            os._exit(0)

    send.ROUND_BYTES = 1500  # type: ignore[misc]
    send.send(Path(session), send.position_of(position), write)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
