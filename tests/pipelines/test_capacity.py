"""Which number of streams comes next, what a study keeps, and that no process outlives a measurement."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import psutil
import pytest
import soundfile

from pipelines.experiments.capacity import streams, study
from pipelines.experiments.capacity.streams import Bench, Level, Machine, Sound
from pipelines.experiments.capacity.study import About, kept, opened
from profiler.errors import BadInput, Cancelled
from profiler.process import children
from tests.each import each

ABOUT = About("1", "a processor", 2, None, {"search.beam": "13"}, "digest")


def outcomes_of(low: int, high: int, holds: Callable[[int], bool]) -> dict[int, list[bool]]:
    outcomes: dict[int, list[bool]] = {}
    while (n := study.following(outcomes, low, high)) is not None:
        assert low <= n <= high
        outcomes.setdefault(n, []).append(holds(n))
    return outcomes


@each("carried", range(70))
def test_the_bend_is_found_to_a_stream_or_five_percent(carried):
    outcomes = outcomes_of(1, 64, lambda n: n <= carried)
    most = min(carried, 64)
    capacity = study.capacity(outcomes)
    assert capacity <= most < capacity + max(1, int(capacity * 0.05))
    assert study.interval(outcomes) == (capacity, capacity)
    sides = {capacity, study.first_failing(outcomes)} - {0, None}
    assert all(len(outcomes[n]) == (3 if n in sides else 1) for n in outcomes)


def test_most_measurements_of_a_number_decide_what_is_measured_next_and_what_is_left():
    assert list(outcomes_of(3, 20, lambda n: n <= 10)) == [3, 6, 12, 9, 10, 11]
    assert outcomes_of(8, 8, lambda n: True) == {8: [True] * 3}
    assert outcomes_of(8, 64, lambda n: False) == {8: [False] * 3}
    assert study.capacity({8: [True], 9: [True, False, True], 10: [False] * 3}) == 9
    assert study.interval({8: [True], 9: [True, False, True], 10: [False] * 3}) == (8, 9)
    assert study.interval({8: [True] * 3, 9: [False, True, False]}) == (8, 9)
    assert study.capacity({8: [True], 12: [False], 16: [True]}) == 8
    assert study.following({8: [True], 9: [True, False], 10: [False]}, 1, 64) == 8
    assert study.remaining({}, 1, 64, 5) == [1, 2, 4, 8, 6, 5, 5, 5, 6, 6]
    assert study.remaining({1: [True], 2: [True], 4: [False]}, 1, 64, 2) == [3, 2, 2, 3, 3]
    # A guess that what was measured contradicts.
    for guess in (1, 9):
        assert study.remaining({1: [True], 2: [True], 3: [True], 4: [False]}, 1, 64, guess) == [3, 3, 4, 4]


def test_a_noisy_bend_ends_the_search():
    noise = random.Random(1)
    for _ in range(50):
        outcomes = outcomes_of(1, 64, lambda n: n + noise.gauss(0, 4) < 30)
        assert 15 < study.capacity(outcomes) < 40
        assert sum(map(len, outcomes.values())) < 40


def test_sounds_are_repeated_with_pauses_and_begin_elsewhere(tmp_path):
    rate = 1000
    sound = Sound.of([np.full(500, 0.5, np.float32), np.full(300, -0.5, np.float32)], rate)
    assert sound.seconds == 2 * streams.PAUSE_S + 0.8
    sound.write(tmp_path / "a.wav", 3.0, 0.0)
    sound.write(tmp_path / "b.wav", 3.0, 0.5)
    a, b = (soundfile.read(tmp_path / name)[0] for name in ("a.wav", "b.wav"))
    assert len(a) == len(b) == 3000
    assert np.allclose(a[:500], 0.5)
    assert np.allclose(a[1500:1800], -0.5)
    assert np.allclose(a[2800:], 0.5)
    assert 0 < np.abs(a[500:1500]).max() < 1e-3
    assert np.allclose(b[:1400], a[1400:2800])


@each("n", [1, 2, 7, 40])
def test_streams_begin_one_after_the_other_spread_over_a_chunk(n):
    starts = streams._starts(n, 0.16)
    assert starts == sorted(starts)
    assert len(starts) == n
    assert starts[-1] <= n * streams.APART_S + 0.16
    phases = np.sort(np.mod(starts, 0.16))
    gaps = np.diff([*phases, phases[0] + 0.16])
    assert gaps.max() < 0.16 / n * 2.7  # by the three-gap theorem 2.618 for the golden ratio


RUN = """
import json, os, sys, time
print("decoding", file=sys.stderr, flush=True)
sys.stdin.readline()
{work}
sys.stdin.read()
print(json.dumps({{"pid": os.getpid(), "cores": len(os.sched_getaffinity(0)), "omp": os.environ["OMP_NUM_THREADS"]}}))
"""


def bench(cancelled: Callable[[], bool] = lambda: False, work: str = "") -> Bench:
    sound = Sound.of([np.zeros(1600, np.float32)], 1600)
    core = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    command = [sys.executable, "-c", RUN.format(work=work)]
    return Bench(lambda file: command, sound, 0.16, Machine((core,), None), cancelled)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WARM_UP_S", "AFTER_S"):
        monkeypatch.setattr(streams, name, 0.1)


needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no choice of processors here")


@needs_affinity
@pytest.mark.usefixtures("hasty")
def test_the_streams_share_the_cores_and_end_with_the_measurement(tmp_path):
    steps: list[str] = []
    level = bench().measure(3, 0.3, tmp_path / "3-1", steps.append)
    assert (level.n, level.joules) == (3, None)
    assert 0.3 <= level.window_s < 5
    assert level.begin_ns < level.end_ns < level.stopped_ns
    assert level.memory_bytes is None or level.memory_bytes > 3e6
    assert {"starting", "measuring for 0 s", "ending"} == set(steps)
    reports = [f"{number}.{kind}" for number in (1, 2, 3) for kind in ("json", "txt")]
    assert sorted(file.name for file in (tmp_path / "3-1").iterdir()) == [*reports, "result.json"]
    for report in reports[::2]:
        assert '"cores": 1, "omp": "1"' in (tmp_path / "3-1" / report).read_text()


@needs_affinity
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("begun", [False, True])
def test_a_stop_leaves_no_process(begun, tmp_path):
    before = set(psutil.Process().children())
    met, steps = list[set[psutil.Process]](), list[str]()

    def step(what: str) -> None:
        steps.append(what)
        if what.startswith("measuring") if begun else len(steps) == 2:
            met.append(set(psutil.Process().children()) - before)

    with pytest.raises(Cancelled):
        bench(cancelled=lambda: bool(met)).measure(2, 60.0, tmp_path / "2-1", step)
    assert met[0]
    assert set(psutil.Process().children()) <= before
    assert not list(tmp_path.glob("2-1/*.wav"))
    assert not (tmp_path / "2-1" / "result.json").exists()


@needs_affinity
@pytest.mark.usefixtures("hasty")
def test_a_stream_that_ends_early_ends_the_measurement_with_its_last_words(tmp_path):
    before = set(psutil.Process().children())
    with pytest.raises(BadInput, match="Stream 1 has ended: there is no such model"):
        bench(work="sys.exit('asrscope: there is no such model.')").measure(2, 60.0, tmp_path / "2-1", print)
    assert set(psutil.Process().children()) <= before


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the scheduler of Linux tells the waiting")
@needs_affinity
@pytest.mark.usefixtures("hasty")
def test_streams_that_share_a_core_wait_for_it(tmp_path):
    busy = (
        "end = time.time() + 60\nwhile time.time() < end and not __import__('select').select([0], [], [], 0)[0]: pass"
    )
    level = bench(work=busy).measure(3, 1.0, tmp_path / "3-1", print)
    # Each is ready all the time; together they have one core, or less.
    assert level.cpu_s + level.waited_s == pytest.approx(3 * level.window_s, rel=0.25)
    assert level.cpu_s < 1.3 * level.window_s
    assert level.waited_s > 1.5 * level.window_s


class Planted:
    machine = Machine((0, 1), None)
    cancelled = staticmethod(lambda: False)

    def __init__(self, stop_after: int = 1000) -> None:
        self.met: list[int] = []
        self.windows: list[float] = []
        self._stop_after = stop_after

    def measure(self, n: int, window_s: float, folder: Path, step: Callable[[str], None]) -> Level:
        step("starting")
        folder.mkdir(parents=True)
        if len(self.met) == self._stop_after:
            raise Cancelled
        self.met.append(n)
        self.windows.append(window_s)
        level = Level(n, 0, int(window_s * 1e9), 0, 1.0, n * 0.1 * window_s, 0.0, 1.0, n * 200_000_000, None)
        (folder / "result.json").write_bytes(msgspec.json.encode(level))
        return level


def made(folder: Path, bench: Planted, carried: int, low: int = 1, high: int = 64) -> study.Study:
    return study.Study(folder, bench, low, high, None, lambda each: each.level.n <= carried)  # type: ignore[arg-type]


@pytest.fixture
def decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sound has two words a second, and its process 250 MB."""

    def run_once(command: list[str], place: Path, *_: object) -> int:
        (place / "1.json").write_text('{"utterances": [{"hypothesis": "a b c d", "audio_s": 2.0, "wall_s": 0.1}]}')
        return 250_000_000

    monkeypatch.setattr(streams, "run_once", run_once)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    free = SimpleNamespace(available=100_000_000_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    return free


@pytest.mark.usefixtures("decoded_once", "memory")
def test_a_study_goes_on_where_it_was_stopped(tmp_path):
    said: list[str] = []
    first = Planted(stop_after=4)
    with opened(tmp_path, ABOUT), pytest.raises(Cancelled):
        made(tmp_path, first, 12).run([], lambda text, share: said.append(text))
    assert first.met == [1, 2, 4, 8]
    assert first.windows == [200.0, 100.0, 50.0, 25.0]  # 400 words
    assert said[:2] == ["decoding the sound once", "1 stream: starting, about 27 min left"]
    # Guess 40 streams: 15 measurements of 595 s in all, 10 s around each, 465 streams of 1.84 s to start and end.
    second = Planted()
    with opened(tmp_path, ABOUT):
        resumed = made(tmp_path, second, 12)
        resumed.run([], lambda text, share: said.append(text))
        assert second.met == [16, 12, 14, 13, 12, 12, 13, 13]
        assert [each.folder.name for each in resumed.measured[12]] == ["12-1", "12-2", "12-3"]
        assert study.capacity(resumed.outcomes) == 12
        assert not resumed.short_of_memory
        third = Planted()
        again = made(tmp_path, third, 12)
        again.run([], lambda text, share: None)
        assert third.met == []
        assert again.outcomes == resumed.outcomes
    assert said.count("decoding the sound once") == 1


@pytest.mark.usefixtures("decoded_once")
def test_no_more_streams_are_tried_than_fit_into_memory(tmp_path, memory):
    memory.available = study.RESERVE_BYTES + 11 * 200_000_000
    planted = Planted()
    with opened(tmp_path, ABOUT):
        limited = made(tmp_path, planted, 30)
        limited.run([], lambda text, share: None)
        assert planted.met == [1, 2, 4, 8, 11, 11, 11]
        assert limited.short_of_memory
        assert "each takes 200 MB, and 3.2 GB are free" in limited.memory_text()
        memory.available = study.RESERVE_BYTES
        with pytest.raises(BadInput, match=r"There is no memory for 32 streams: each takes 200 MB"):
            made(tmp_path, Planted(), 30, low=32).run([], lambda text, share: None)


def test_another_study_is_refused(tmp_path):
    with opened(tmp_path, ABOUT):
        pass
    for change, sentence in (
        ({"settings": {"search.beam": "9"}}, r"other settings \(search.beam is 13 there\)"),
        ({"cores": 1}, "another number of cores"),
    ):
        with pytest.raises(BadInput, match=sentence), opened(tmp_path, msgspec.structs.replace(ABOUT, **change)):
            pass


GOOD = Level(8, 0, 10**9, 2 * 10**9, 1.0, 0.5, 0.1, 1.0, 1000, None)


@each(
    "spoilt",
    [
        *({"begin_ns": 10**9}, {"begin_ns": -1}, {"end_ns": 1 << 62}, {"n": 0}, {"n": 7}, {"cpu_s": -1.0}),
        *({"cpu_s": 1e99}, {"stopped_ns": -5}, {"memory_bytes": "x"}),
    ],
)
def test_a_measurement_that_cannot_be_is_made_again(spoilt, tmp_path):
    levels = tmp_path / "levels"
    (levels / "8-1").mkdir(parents=True)  # without a result
    for name, result in (("8-2", {}), ("8-3", spoilt), ("x-y", {}), ("8-", {})):
        (levels / name).mkdir()
        (levels / name / "result.json").write_bytes(msgspec.json.encode(msgspec.to_builtins(GOOD) | result))
    assert [each.folder.name for each in kept(tmp_path)[8]] == ["8-2"]
    assert sorted(path.name for path in levels.iterdir()) == ["8-", "8-2", "x-y"]


@pytest.mark.parametrize("name", ["study.json", "levels", "first", "first/result.json"])
@pytest.mark.parametrize("kind", ["fifo", "link"])
@pytest.mark.usefixtures("decoded_once", "memory")
def test_files_of_a_strangers_study_are_looked_at_before_they_are_read(name, kind, tmp_path):
    def study_two() -> None:
        with opened(tmp_path / "a", ABOUT):
            made(tmp_path / "a", Planted(), 1, high=2).run([], lambda text, share: None)

    study_two()
    place, elsewhere = tmp_path / "a" / name, tmp_path / "elsewhere"
    place.rename(elsewhere)
    if kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to(elsewhere)
    before, said = sorted(elsewhere.rglob("*")), str(place)
    try:
        study_two()
    except BadInput as problem:
        said = str(problem)
    assert str(place) in said
    assert sorted(elsewhere.rglob("*")) == before


LIMITED = """
import resource, sys
import numpy as np
from pipelines.audio.writing import write_wav
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
write_wav(sys.argv[1], np.zeros(9000, np.float32), 16000, "PCM_16")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_sound_that_does_not_fit_is_a_sentence(tmp_path, monkeypatch):
    words = children.python("-c", LIMITED, str(tmp_path / "a.wav"))
    said = subprocess.run(words, env=children.environment(), capture_output=True, text=True, check=False).stderr
    assert said.endswith(f"{tmp_path}/a.wav: the sound cannot be written there: file too large.\n")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=4096))
    with pytest.raises(BadInput, match=r"the disk is full \(0 MB are free\)"):
        bench().measure(3, 0.3, tmp_path / "levels/3-1", print)
    assert list((tmp_path / "levels").iterdir()) == []
