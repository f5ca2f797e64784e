"""A program with the output of `asrscope run` and `ab`, whose times and errors follow a law: python fake_asrscope.py …

The law: block and search.beam decide about time (`seconds`), search.beam about errors (`errors`). `behaviour.json`
next to FILE of `--config` says what goes wrong: {"drift": runs that are slow, "kill": trials whose process dies,
"full": what the disk says, "busy": seconds that a run takes}.
"""

import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

WORDS = 20


def seconds(settings: dict[str, float]) -> float:
    """Of one pass: 1 at the reference."""
    return 0.5 + 0.5 * (settings["search.beam"] - 7) / 4 + 0.05 * (settings["block"] != 16)


def errors(settings: dict[str, float]) -> int:
    return int(max(0, 11 - settings["search.beam"]) * 2)


def settings_of(words: list[str], option: str) -> dict[str, float]:
    made = {"search.beam": 11.0, "block": 16.0}
    for name, word in itertools.pairwise(words):
        if name == option:
            key, _, value = word.partition("=")
            if key in made:
                made[key] = float(value)
    return made


def main(words: list[str]) -> int:
    value = dict(itertools.pairwise(words))
    out = Path(value["--out"])
    log = Path(value["--config"])
    behaviour = json.loads(log.with_name("behaviour.json").read_text())
    with log.with_name("started.txt").open("a") as started:
        print(out.parent.name, out.stem, file=started)
    time.sleep(behaviour.get("busy", 0))
    if out.parent.name in behaviour.get("kill", []):
        os.killpg(0, signal.SIGKILL)
    if "full" in behaviour:
        print(f"asrscope: {behaviour['full']}", file=sys.stderr)
        return 2
    if words[0] == "ab":
        a, b = settings_of(words, "--a"), settings_of(words, "--b")
        ratio = seconds(b) / seconds(a)
        overall = {"ratio": ratio, "ci95": [0.99 * ratio, 1.01 * ratio], "verdict": "undecided"}
        print(json.dumps({"overall": overall, "wer": {"a": errors(a) / WORDS, "b": errors(b) / WORDS}}))
        return 0
    chosen = settings_of(words, "--set")
    slow = 1.5 if f"{out.parent.name} {out.stem}" in behaviour.get("drift", []) else 1.0
    # The first pass warms up.
    passes = [2.0, 1.0, 1.01, 1.0, 1.01][: int(value["--repeat"])]
    row = {"id": "u", "hypothesis": behaviour.get("words", {}).get(f"{out.parent.name} {out.stem}", "yes")}
    print(
        json.dumps(
            {
                "rtf": seconds(chosen),
                "audio_s": 1.0,
                "wer": errors(chosen) / WORDS,
                "memory": {"peak_bytes": 1e8 + 1e6 * chosen["block"]},
                "latency": {"total_s": 0.01 * chosen["block"]},
                "utterances": [row | {"wall_s": slow * x * seconds(chosen)} for x in passes],
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
