"""The campaign: N attacks of each kind, from a seed.

python -m tests.bench.campaign --each 1000
python -m tests.bench.campaign --kind sessions audio --each 300 --seed 7 --keep /tmp/found
"""

from __future__ import annotations

import importlib
import itertools
import json
import pkgutil
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench import campaign
from tests.bench._rounds import command_line
from tests.bench.campaign.attack import Attack
from tests.bench.campaign.driver import SECONDS, Driver, Tally, limit_cores, warm

NOT_KINDS = {"attack", "driver", "desk", "__main__"}


def kinds() -> list[str]:
    """The kinds of input that have a generator here."""
    names = {module.name for module in pkgutil.iter_modules(campaign.__path__)}
    return sorted(name for name in names - NOT_KINDS if not name.startswith("_"))


def attacks(kind: str, seed: int, count: int) -> Iterator[Attack]:
    """`count` attacks of a kind; the same for the same seed."""
    module = importlib.import_module(f"{campaign.__name__}.{kind}")
    made: Iterator[Attack] = module.attacks(random.Random(f"{kind} {seed}"), count)
    return itertools.islice(made, count)


def main(arguments: list[str] | None = None) -> int:
    """Run and report; 1 when anything was found."""
    parser = command_line("campaign", __doc__)
    parser.add_argument("--kind", nargs="+", choices=kinds(), default=kinds())
    parser.add_argument("--each", type=int, default=100, help="attacks of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="until a hang (20)")
    parser.add_argument("--keep", type=Path, help="where the folders of findings are kept")
    parser.add_argument("--cache", type=Path, help="of graphs; a new one by default")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    limit_cores()
    warm()
    whole, rows = Tally(), []
    with tempfile.TemporaryDirectory(prefix="campaign-") as place:
        driver = Driver(Path(place), given.seconds, given.cache)
        driver.fill()
        for kind in given.kind:
            start = time.monotonic()
            tally = driver.run(attacks(kind, given.seed, given.each), given.keep)
            whole.add(tally)
            row = {
                "kind": kind,
                "attacks": tally.attacks,
                "commands": tally.commands,
                "refused": tally.refused,
                "findings": len(tally.findings),
                "slowest_s": round(tally.slowest_s, 1),
                "largest_mb": round(tally.largest_bytes / 1e6),
                "minutes": round((time.monotonic() - start) / 60, 1),
            }
            rows.append(row)
            print("  ".join(f"{k}={v}" for k, v in row.items()), file=sys.stderr, flush=True)
            for finding in tally.findings:
                print(f"  {finding}", file=sys.stderr, flush=True)
    if given.json:
        print(json.dumps({"seed": given.seed, "kinds": rows, "findings": whole.findings}))
    else:
        print(f"{whole.attacks} attacks, {whole.commands} commands, {len(whole.findings)} findings")
    return int(bool(whole.findings))


if __name__ == "__main__":
    sys.exit(main())
