"""Constants that stand in the code from a measurement, beside what this machine measures of them now.

    python -m tests.bench.constants                   all of them, as JSON
    python -m tests.bench.constants --only threads    of one kind: threads, products, calls, system, speech

A constant decides what the program does (how much work is worth a second thread). It need not be what this machine
gives, but a large difference is a reason to look. What is of speech is of librivox-0870 and cards-001, the preset
`gmm`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from profiler.errors import BadInput
from tests.bench import _constants_calls, _constants_products, _constants_speech

KINDS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "threads": _constants_products.threads,
    "products": _constants_products.products,
    "calls": _constants_calls.calls,
    "system": _constants_calls.system,
    "speech": _constants_speech.speech,
}


def main(arguments: list[str] | None = None) -> int:
    """Print the rows; 2 where speech is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.constants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", choices=tuple(KINDS), action="append")
    given = parser.parse_args(arguments)
    try:
        rows = [row for kind in given.only or KINDS for row in KINDS[kind]()]
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    print(json.dumps({"schema": 1, "bench": "constants", "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
