"""A small share of the campaign of hostile inputs, and that its driver sees what it looks for."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.each import each

pytest.importorskip("resource", reason="the campaign forks")

from pipelines import config as tree
from pipelines.config import presets
from profiler.process import children
from tests.bench.campaign import driver, words
from tests.bench.campaign.__main__ import KINDS
from tests.bench.campaign.attack import SESSION, Attack, session
from tests.conftest import CHECKOUT

SHARE = 1  # Attacks of each kind: that its generator and the driver work
ELSEWHERE = {"audio", "kaldi", "models", "nets", "texts", "window"}  # Kinds of which other tests try more


if not hasattr(os, "pidfd_open"):
    pytest.skip("the driver needs Linux", allow_module_level=True)


@pytest.mark.slow
def test_hostile_inputs_end_in_a_sentence(tmp_path):
    # In a process of its own: forks of this one would inherit the threads of the tests.
    # How long things take is asked on an idle machine, by the campaign itself.
    here = [kind for kind in KINDS if kind not in ELSEWHERE]
    options = ["--json", "--seconds", "300", "--cache", os.environ["ASRSCOPE_CACHE"], "--kind", *here]
    child = subprocess.run(
        [*children.python("-m", "tests.bench.campaign"), "--each", str(SHARE), *options],
        cwd=CHECKOUT,
        env=children.environment({"TMPDIR": str(tmp_path)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.stdout, child.stderr
    result = json.loads(child.stdout)
    assert result["findings"] == []
    assert [row["kind"] for row in result["kinds"]] == here
    assert all(row["attacks"] >= SHARE for row in result["kinds"])


def ends(work, here: Path, seconds: float = 30.0) -> list[str]:
    return driver.faults(driver.forked(work, here, driver.Limits(seconds)))


def fail() -> int:
    raise KeyError("text")


def crash() -> int:
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


LITTLE = 100_000_000  # Bytes that a command may take here


def hold_memory() -> int:
    block = bytearray(2_000_000_000)  # far more than what this process has, and its child shares
    block[::4096] = b"x" * len(block[::4096])
    time.sleep(60)
    return len(block)


@each(
    "work, seconds, fault",
    [
        (lambda: 0, 30.0, None),
        (lambda: 2, 30.0, "refused without a sentence"),
        (crash, 30.0, "signal 11"),
        (fail, 30.0, "traceback: KeyError: 'text'"),
        (lambda: time.sleep(60) or 0, 0.3, "killed after"),
        (lambda: sys.stdout.write("\x1b[2J") and 0, 30.0, "control characters on a stream"),
        (lambda: sys.stderr.write("x" * 5000) and 2, 30.0, "a sentence of over 1,000 characters"),
    ],
)
def test_the_end_of_a_command_is_a_finding_or_none(work, seconds, fault, tmp_path):
    limits = driver.Limits(seconds, LITTLE)
    found = driver.faults(driver.forked(work, tmp_path, limits), limits)
    assert any(one.startswith(fault) for one in found) if fault else not found


def test_a_command_that_takes_too_much_memory_is_killed_before_its_time(tmp_path):
    limits = driver.Limits(50.0, LITTLE)
    ended = driver.forked(hold_memory, tmp_path, limits)
    assert ended.seconds < limits.seconds / 2
    assert ended.bytes > LITTLE
    assert driver.faults(ended, limits)[0].startswith("killed after")


def test_changes_outside_the_folder_of_an_attack_are_found(tmp_path):
    def findings(make, *words: str) -> list[str]:
        return driver.Driver(tmp_path, 120.0).run([Attack("a", make, (words,))]).findings

    def sample(here: Path) -> None:
        (here / SESSION).write_bytes(session())

    def ran(here: Path) -> None:
        (here / "PWNED").write_text("json")

    assert findings(sample, "export", SESSION, "--csv", "a.csv") == []
    (outside,) = findings(sample, "export", SESSION, "--csv", "../outside/a.csv")
    assert outside.endswith("files outside its folder changed")
    (planted,) = findings(ran, "presets")
    assert planted.endswith("code of the attack ran")


def test_settings_at_random_are_valid_and_of_every_option():
    met, rng = set(), random.Random(1)
    for name in presets.names() * 20:
        config = presets.load(name).config
        for text in words.drawn(rng, name):
            key, value = tree.parse_assignment(text)
            config = tree.replace(config, key, value)
            met.add(key)
        tree.check(config)
    named = {option.key for option in tree.options() if option.type != "text" or option.shipped()}
    assert met == named - set(words.ENDLESS)


def test_a_second_that_costs_more_in_a_long_file_is_a_finding():
    short, dear = b'{"rtf": 0.02}', b'{"rtf": 0.3}'
    assert words.dearer([short, short]) is None
    assert "15.0 times as much" in str(words.dearer([short, dear]))


def test_numbers_that_are_none_are_no_json():
    assert driver.no_json(b'{"rtf": 0.5}\n') is None
    for out in (b"", b'{"rtf": NaN}', b"{} {}"):
        assert driver.no_json(out).startswith("wrong JSON")
