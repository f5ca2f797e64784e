"""The campaign: N attacks of each kind, from a seed.

python -m tests.bench.campaign --each 1000
python -m tests.bench.campaign --kind sessions audio --each 300 --seed 7 --keep /tmp/found
"""

from __future__ import annotations

import itertools
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench._rounds import command_line
from tests.bench.campaign.attack import Attack
from tests.bench.campaign.driver import SECONDS, Driver, Tally, limit_cores, warm
from tests.bench.campaign.kinds import KINDS


def attacks(kind: str, seed: int, count: int | None) -> Iterator[Attack]:
    """`count` attacks of a kind, or all that there are; the same for the same seed."""
    return itertools.islice(KINDS[kind].attacks(kind, random.Random(f"{kind} {seed}")), count)


def main(arguments: list[str] | None = None) -> int:
    """Run and report; 1 when anything was found."""
    parser = command_line("campaign", __doc__)
    parser.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--each", type=int, default=100, help="attacks of each kind")
    parser.add_argument(
        "--minutes", type=float, help="how long they take together, each kind as long, instead of --each"
    )
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
        driver.fill(attack for kind in given.kind for attack in KINDS[kind].sound())
        for kind in given.kind:
            start = time.monotonic()
            made = attacks(kind, given.seed, None if given.minutes else given.each)
            until = start + 60 * (given.minutes or math.inf) / len(given.kind)
            tally = driver.run(itertools.takewhile(lambda _, end=until: time.monotonic() < end, made), given.keep)
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
