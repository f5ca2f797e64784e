"""Time that is neither work nor other programs: limits of containers, hosts of virtual machines, and standing still.

The texts are those of real systems, in a folder that stands for the root.
"""

import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from profiler.machine import cpu_limit, describe, run_queue
from profiler.machine.run_queue import Lost, Pulse, RunQueue
from tests.fake_clock import FakeClock

MS = 1_000_000

V2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - cgroup2 cgroup2 rw,nsdelegate"
V2_DOCKER = "1043 1042 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate"
V1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu"
V1_DOCKER = (
    "700 690 0:31 /docker/0af3 /sys/fs/cgroup/cpu,cpuacct ro,nosuid,nodev,noexec,relatime master:11 - "
    "cgroup cgroup rw,cpu,cpuacct"
)
MEMORY = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"

CGROUP = "sys/fs/cgroup"


class System(NamedTuple):
    """What a process reads of its groups, files below CGROUP, and its limit in cores with the folder that says so."""

    cgroup: str
    mounts: tuple[str, ...]
    files: dict[str, str]
    cores: float | None
    folder: str = ""


def v1_limit(folder: str, quota: str) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": "100000\n"}


PODS = {
    "kubepods.slice/pod7/app/cpu.max": "max 100000\n",
    "kubepods.slice/pod7/cpu.max": "200000 100000\n",
    "kubepods.slice/cpu.max": "400000 100000\n",
}
SYSTEMS = {
    "v2": System("0::/user.slice/s.scope\n", (V2,), {"user.slice/s.scope/cpu.max": "15000 100000\n"}, 0.15,
                 "user.slice/s.scope"),
    "v2, a container's own view": System("0::/\n", (V2_DOCKER,), {"cpu.max": "150000 100000\n"}, 1.5),
    "v2, the tightest is that of the slice": System("0::/kubepods.slice/pod7/app\n", (V2,), PODS, 2.0,
                                                    "kubepods.slice/pod7"),
    "v2, outside of what is mounted": System("0::/../other\n", (V2_DOCKER,), {"cpu.max": "50000 100000\n"}, 0.5),
    "v1": System("5:memory:/a\n1:cpu:/q\n0::/\n", (MEMORY, V1), v1_limit("cpu/q", "15000"), 0.15, "cpu/q"),
    "v1, a container": System("4:cpu,cpuacct:/docker/0af3\n", (V1_DOCKER,), v1_limit("cpu,cpuacct", "250000"), 2.5,
                              "cpu,cpuacct"),
    "no limit, v1": System("1:cpu:/\n", (V1,), v1_limit("cpu", "-1"), None),
    "no limit, v2": System("0::/a\n", (V2,), {"a/cpu.max": "max 100000\n"}, None),
    "nonsense": System("0::/a\n", (V2, "what"), {"a/cpu.max": "1 0\n"}, None),
    "another system": System("", (), {}, None),
}  # fmt: skip


def put(root: Path, system: System) -> None:
    files = {"proc/self/cgroup": system.cgroup, "proc/self/mountinfo": "\n".join(system.mounts)}
    files |= {f"{CGROUP}/{name}": text for name, text in system.files.items()}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cpu_limit, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_limit_of_a_container(name, root, monkeypatch):
    system = SYSTEMS[name]
    put(root, system)
    assert cpu_limit.cores() == system.cores
    found = cpu_limit.limits()
    assert [limit.folder for limit in found[:1]] == ([root / CGROUP / system.folder] if system.cores else [])
    monkeypatch.setattr(describe.os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    usable = {None: 8, 0.15: 1, 0.5: 1, 1.5: 2, 2.0: 2, 2.5: 3}[system.cores]
    about = describe.describe()["cores"]
    assert (about["usable"], about.get("limit")) == (usable, system.cores)


THROTTLED = {
    "v1": "nr_periods 424\nnr_throttled 421\nthrottled_time 24900000000\nnr_bursts 0\nburst_time 0\n",
    "v2": "usage_usec 4\nnr_periods 424\nnr_throttled 421\nthrottled_usec 24900000\nnr_bursts 0\n",
}


@pytest.mark.parametrize("name", THROTTLED)
def test_for_how_long_a_group_was_held_up(name, root):
    system = SYSTEMS[name]
    put(root, system)
    (root / CGROUP / system.folder / "cpu.stat").write_text(THROTTLED[name])
    throttling = cpu_limit.Throttling()
    assert throttling.limited
    assert throttling.total_ns() == 24_900_000_000
    throttling.close()
    assert not throttling.limited


class Machine:
    """A thread that runs and is held up as the test says, and the files in which the system tells of it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, limited: bool, steal: int) -> None:
        self.root, self.clock = root, FakeClock(10**12)
        self.own = self.queued = self.throttled = self.others = 0
        self.ticks = {"busy": 1000, "steal": steal}
        self.system = SYSTEMS["v2" if limited else "no limit, v2"]
        monkeypatch.setattr(run_queue, "PATH", f"{root}/{{}}/schedstat")
        monkeypatch.setattr(run_queue, "STAT", f"{root}/stat")
        monkeypatch.setattr(run_queue, "TICK_NS", 10 * MS)
        monkeypatch.setattr(run_queue.time, "perf_counter_ns", self.clock)
        monkeypatch.setattr(run_queue.time, "thread_time_ns", lambda: self.own)
        monkeypatch.setattr(run_queue, "TASKS", str(root / "tasks"))
        put(root, self.system)
        self.tell()
        self.pulse = Pulse(self.clock)
        self.queue = RunQueue(self.pulse)
        self.pulse.beat()

    def tell(self) -> None:
        me = threading.get_native_id()
        times = f"{self.own + 1} {self.queued} 7\n"
        for name, text in {
            f"{me}/schedstat": times,
            f"tasks/{me}/schedstat": times,
            "tasks/1/schedstat": f"{self.others // 2 + 1} {self.others // 2} 7\n",
            "stat": f"cpu  {self.ticks['busy']} 0 0 9 9 0 0 {self.ticks['steal']} 0 0\ncpu0 1 2 3\n",
            f"{CGROUP}/{self.system.folder or 'a'}/cpu.stat": f"throttled_usec {self.throttled // 1000}\n",
        }.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def pass_(
        self, own: int, queued: int = 0, blocked: int = 0, throttled: int = 0, ticks: int = 0, others: int = 0
    ) -> Lost:
        """Milliseconds of each, without a beat; `others`: for which another thread ran or was ready."""
        self.others += others * MS
        self.own, self.queued = self.own + own * MS, self.queued + queued * MS
        self.throttled += throttled * MS
        self.ticks = {"busy": self.ticks["busy"] + own // 10, "steal": self.ticks["steal"] + ticks}
        self.clock.advance((own + queued + blocked) * MS)
        self.tell()
        return self.queue.lost()


@pytest.fixture
def machine(root: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Machine:
    return Machine(root, monkeypatch, *getattr(request, "param", (False, 0)))


def ms(*values: int) -> Lost:
    return Lost(*(value * MS for value in values))


def test_a_thread_that_waits_or_computes_loses_nothing(machine):
    assert machine.pass_(own=50) == ms()
    assert machine.pass_(own=50, blocked=120) == ms()
    assert machine.pass_(own=50, queued=30) == ms(30)


@pytest.mark.parametrize("machine", [(True, 0)], indirect=True)
def test_what_a_limit_took_is_taken_off_the_run_queue(machine):
    assert machine.pass_(own=15, queued=85, throttled=85) == ms(0, 85)
    assert machine.pass_(own=15, queued=100, throttled=85) == ms(15, 85)
    # Several processors were held up at once, and a lock was waited for that a held-up thread had.
    assert machine.pass_(own=15, queued=40, throttled=170) == ms(0, 40)
    assert machine.pass_(own=15, queued=40, blocked=45, throttled=85) == ms(0, 85)
    assert machine.pass_(own=15, queued=40) == ms(40)


@pytest.mark.parametrize("machine", [(False, 700)], indirect=True)
def test_what_the_host_took_is_taken_off_the_run_queue(machine):
    """It is counted in ticks, of all processors: a thread that did half of the work lost half of it."""
    assert machine.pass_(own=400, blocked=60, ticks=6) == ms(0, 60)
    assert machine.pass_(own=400, queued=100, ticks=4) == ms(60, 40)
    machine.ticks["busy"] += 40  # of others
    assert machine.pass_(own=400, queued=100, ticks=10) == ms(50, 50)
    assert machine.pass_(own=400, queued=100) == ms(100)
    assert machine.queue.steal.total_ns == 150 * MS


def test_a_process_that_stood_still(machine):
    for _ in range(3):
        machine.clock.advance(100 * MS)
        machine.own += 99 * MS
        machine.tell()
        machine.pulse.beat()
    machine.queue.lost()
    # Stopped for four seconds in a block of 20 ms, and it had waited for its turn.
    assert machine.pass_(own=15, queued=5, blocked=4000) == ms(5, 0, 4000)
    # It waits for a thread that has the interpreter and gets no processor.
    assert machine.pass_(own=15, blocked=4000, others=4000) == ms()
    machine.pulse.beat()
    # The thread alone waits for a file: the others go on.
    for _ in range(10):
        machine.clock.advance(100 * MS)
        machine.tell()
        machine.pulse.beat()
    assert machine.queue.lost() == ms()
    # All are ready, and none gets a processor: that is the load.
    assert machine.pass_(own=1, queued=3000) == ms(3000)


def test_a_process_that_stood_still_during_a_reading(machine, monkeypatch):
    machine.pulse.beat()
    read = machine.queue._ready_ns

    def read_and_stop() -> int:
        machine.clock.advance(4000 * MS)
        return read()

    with monkeypatch.context() as patched:
        patched.setattr(machine.queue, "_ready_ns", read_and_stop)
        assert machine.pass_(own=15, queued=5) == ms(5)
    assert machine.pass_(own=15) == ms(0, 0, 4000), "it belongs to the next tile, which contains it"


def test_a_kernel_that_counts_nothing_is_not_believed(tmp_path, monkeypatch):
    if Path(run_queue.TASKS).exists():
        beating = Pulse()
        assert (beating.beat(), beating.stopped_ns(0)) == ({}, 0)
    monkeypatch.setattr(run_queue, "TASKS", str(tmp_path))
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "schedstat").write_text("0 0 0\n")
    silent = Pulse(FakeClock(10**10))
    with pytest.raises(NotImplementedError):
        silent.beat()
    assert silent.stopped_ns(0) == 0


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that Linux writes for this thread."""
    monkeypatch.setattr(run_queue, "PATH", f"{tmp_path}/{{}}-schedstat")
    monkeypatch.setattr(run_queue, "LEAST_AWAY_NS", -(2**62))
    monkeypatch.setattr(run_queue, "STAT", f"{tmp_path}/stat")
    monkeypatch.setattr(cpu_limit, "ROOT", tmp_path)
    return tmp_path / f"{threading.get_native_id()}-schedstat"


def test_the_run_queue_says_what_was_waited_since_the_last_call(queue):
    queue.write_text("5000 700 3\n")
    with RunQueue() as waiting:
        assert waiting.readable
        # Numbers may be long, and a kernel that counts anew takes nothing back.
        for text, waited_ns in (
            ("5000 700 3", 0), ("9000 1000 4", 300), ("9000 1000 4", 0),
            (f"{2**63} {2**62} {2**40}", 2**62 - 1000), ("1 2 3", 0),
        ):  # fmt: skip
            queue.write_text(f"{text}\n")
            assert waiting.waited_ns() == waited_ns
    assert not waiting.readable
    waiting.close()


def test_a_thread_with_its_processor(queue, monkeypatch):
    monkeypatch.setattr(run_queue, "LEAST_AWAY_NS", 5_000)
    monkeypatch.setattr(run_queue, "_away_ns", lambda: (0, 0))
    queue.write_text("5000 700 3\n")
    with RunQueue() as waiting:
        # What was left out counts the next time.
        for away_ns, queued, waited_ns in ((4_000, 1000, 0), (8_000, 1000, 300), (12_000, 1500, 0)):
            monkeypatch.setattr(run_queue, "_away_ns", lambda ns=away_ns: (0, ns))
            queue.write_text(f"9000 {queued} 4\n")
            assert waiting.waited_ns() == waited_ns


@pytest.mark.parametrize("text", [None, "", "5000", "a b c"])
def test_without_the_statistics_there_is_no_waiting(queue, text):
    if text is not None:
        queue.write_text(text)
    with RunQueue() as waiting:
        assert not waiting.readable
        queue.write_text("9000 1000 4\n")
        assert waiting.waited_ns() == 0
