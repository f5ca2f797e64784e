"""The command line of a module that other processes start (`python -m`), for a person who tries it.

Without one, some of them wait for commands on their standard input, and others end with a traceback.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def read_arguments(module: str, purpose: str | None, *names: str, arguments: Sequence[str] | None = None) -> list[str]:
    """Return the values of `names` in `arguments` (None: the command line's), one after the other.

    A name that ends with "?" may be left out, one with "+" may have several values. `--help` prints `purpose`, the
    module's docstring, and ends the process (SystemExit), as does any unknown argument (status 2).
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=purpose,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in names:
        plain = name.rstrip("?+")
        parser.add_argument(plain, nargs=name[len(plain) :] or 1)
    found = vars(parser.parse_args(sys.argv[1:] if arguments is None else arguments))
    return [value for values in found.values() for value in ([values] if isinstance(values, str) else values or [])]
