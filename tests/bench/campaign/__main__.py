"""The campaign: N attacks of each kind, from a seed.

python -m tests.bench.campaign --each 1000
python -m tests.bench.campaign --kind sessions audio --each 300 --seed 7 --keep /tmp/found
"""

import itertools
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.bench._rounds import command_line
from tests.bench.campaign import files, models, others, sessions, words
from tests.bench.campaign.attack import Kind
from tests.bench.campaign.driver import SECONDS, Driver, warm

KINDS: Final[Mapping[str, Kind]] = {
    "audio": files.AUDIO,
    "caches": models.CACHES,
    "flags": Kind(words.flags),
    "graphs": models.GRAPHS,
    "kaldi": models.KALDI,
    "lengths": Kind(words.lengths),
    "mcp": others.ASSISTANTS,
    "models": models.MODELS,
    "nets": models.NETS,
    "outputs": Kind(words.outputs),
    "remembered": others.SETTINGS,
    "remote": others.MACHINES,
    "sessions": sessions.SESSIONS,
    "settings": Kind(words.settings),
    "studies": others.STUDIES,
    "texts": files.TEXT_FILES,
    "window": sessions.WINDOW,
}
"""Every kind of attack by its name."""


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("campaign", __doc__)
    parser.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--each", type=int, default=100, help="attacks of each kind")
    parser.add_argument("--minutes", type=float, help="for all kinds together, each as long, instead of --each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="until a hang (20)")
    parser.add_argument("--keep", type=Path, help="where the folders of findings are kept")
    parser.add_argument("--cache", type=Path, help="of graphs; a new one by default")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    warm()
    rows, findings = [], []
    with tempfile.TemporaryDirectory(prefix="campaign-") as place:
        driver = Driver(Path(place), given.seconds, given.cache)
        driver.fill(attack for kind in given.kind for attack in KINDS[kind].sound())
        for kind in given.kind:
            start = time.monotonic()
            until = start + 60 * (given.minutes or math.inf) / len(given.kind)
            endless = KINDS[kind].attacks(kind, random.Random(f"{kind} {given.seed}"))
            some = itertools.islice(endless, None if given.minutes else given.each)
            tally = driver.run(itertools.takewhile(lambda _, end=until: time.monotonic() < end, some), given.keep)
            findings += tally.findings
            row = {"kind": kind, "attacks": tally.attacks, "commands": tally.commands, "refused": tally.refused}
            row |= {"findings": len(tally.findings), "slowest_s": round(tally.slowest_s, 1)}
            row |= {"largest_mb": round(tally.largest_bytes / 1e6)}
            rows.append(row | {"minutes": round((time.monotonic() - start) / 60, 1)})
            lines = ["  ".join(f"{k}={v}" for k, v in rows[-1].items()), *(f"  {found}" for found in tally.findings)]
            print(*lines, sep="\n", file=sys.stderr, flush=True)
    if given.json:
        print(json.dumps({"seed": given.seed, "kinds": rows, "findings": findings}))
    else:
        attacks, commands = (sum(row[name] for row in rows) for name in ("attacks", "commands"))
        print(f"{attacks} attacks, {commands} commands, {len(findings)} findings")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
