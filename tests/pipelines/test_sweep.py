"""A sweep against a program whose times and errors are known: its front, what goes wrong, and going on after a kill."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import fake_asrscope
import pytest

from pipelines.config import Config, ConfigError
from pipelines.experiments.sweep import folder as folders
from pipelines.experiments.sweep import space
from pipelines.experiments.sweep.folder import Sweep
from pipelines.experiments.sweep.home import Cluster, Home
from pipelines.experiments.sweep.judge import Confirmed
from pipelines.experiments.sweep.space import Point, dominates, front, possible
from pipelines.experiments.sweep.study import Study, StudyRun, plan_grid
from pipelines.run.playlist import Item
from profiler.errors import BadInput, Cancelled
from profiler.files import paths
from profiler.process import children
from tests.each import each
from tests.pipelines.refusing import refusal
from tests.waiting import wait_until

pytest.importorskip("optuna", reason="the extra sweep is not installed")

GRID = ("search.beam=8,9,10,11,12,13", "block=8,16")


def made(place: Path, *over: str, **behaviour: object) -> Sweep:
    """A sweep that runs the fake program, which reads `behaviour`."""
    place.mkdir(exist_ok=True)
    (place / "behaviour.json").write_text(json.dumps(behaviour))
    sound = place / "u.wav"
    sound.write_bytes(b"sound")
    return Sweep(
        reference=Config(),
        axes=space.parse_axes(over or GRID),
        objectives=("rtf", "wer"),
        constraints=(),
        items=(Item("u", sound, "yes"),),
        program=(sys.executable, str(Path(fake_asrscope.__file__).resolve())),
        words=("--config", str(place / "reference.toml")),
        repeat=5,
    )


def swept(
    place: Path,
    sweep: Sweep,
    trials: int = 24,
    cancelled: bool = False,
    engine: Home | Cluster | None = None,
    progress: Callable[[str, float | None], object] = lambda *_: None,
) -> Study:
    with folders.opened(place / "study", sweep) as storage:
        study = Study(place / "study", sweep, storage)
        StudyRun(study, engine or Home(), progress, lambda: cancelled).run(plan_grid(study, trials))
        return study


def states(study: Study) -> list[str]:
    return [one.state for one in study.trials()]


def refused(place: Path, sweep: Sweep) -> str:
    with pytest.raises(BadInput) as problem, folders.opened(place, sweep):
        pass
    return str(problem.value)


def started(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def true_front(sweep: Sweep) -> set[tuple[float, ...]]:
    """Settings on the front by the law itself."""
    points = {}
    for chosen in space.grid(sweep.axes):
        made_of = {key: float(value) for key, value in chosen.items()}
        points[tuple(made_of.values())] = (fake_asrscope.seconds(made_of), fake_asrscope.errors(made_of))
    return {key for key, values in points.items() if not any(dominates(o, values) for o in points.values())}


@pytest.mark.slow
def test_a_grid_is_tried_whole_and_its_front_is_that_of_the_law(tmp_path):
    sweep = made(tmp_path)
    study = swept(tmp_path, sweep)
    trials = {one.number: one for one in study.trials()}
    assert len(trials) == 12
    assert {one.state for one in trials.values()} == {"done"}
    on_front = [trials[point.trial] for point in study.front()]
    assert {tuple(float(v) for v in one.chosen.values()) for one in on_front} == true_front(sweep)
    assert true_front(sweep) == {(beam, 16.0) for beam in (8.0, 9.0, 10.0, 11.0)}
    for one in on_front:
        expected = fake_asrscope.seconds({k: float(v) for k, v in one.chosen.items()})
        assert [study.confirmations[one.number].ratio, one.figures.rtf_ratio] == pytest.approx([expected] * 2)
    assert study.touching() == {one.number: [] for one in on_front}
    first, second = (point.trial for point in study.front()[:2])
    study.confirmations[first] = Confirmed(0.625, (0.6, 0.745))  # the next begins at 0.99 · 0.75
    assert study.touching() == {one.number: [] for one in on_front} | {first: [second], second: [first]}
    assert set(study.importance()) == {"rtf", "wer"}
    assert study.importance()["wer"]["search.beam"] > 0.9


@pytest.mark.slow
def test_a_range_is_sampled_no_settings_are_tried_twice_and_all_can_be_confirmed(tmp_path):
    study = swept(tmp_path, made(tmp_path, "search.beam=8..13", "block=8..16"), trials=9)
    chosen = [tuple(one.chosen.values()) for one in study.trials()]
    assert len(chosen) == len(set(chosen)) == 9
    assert all(8 <= beam <= 13 and block in range(8, 17) for beam, block in chosen)
    StudyRun(study, Home(), lambda *_: None, lambda: False).confirm(everything=True)
    assert len(study.confirmations) == 9
    for one in study.trials():
        low, high = study.confirmations[one.number].ci95
        assert low <= one.figures.rtf_ratio <= high


@pytest.mark.slow
def test_a_trial_whose_reference_drifts_is_repeated_and_in_the_end_rejected(tmp_path):
    sweep = made(tmp_path, "search.beam=8,9", drift=["0-1 after", *(f"1-{n} before" for n in (1, 2, 3))])
    study = swept(tmp_path, sweep)
    first, second = study.trials()
    assert (first.state, second.state) == ("done", "rejected")
    assert Path(first.figures.session).parent.name == "0-2"
    assert str(second.why).startswith("The reference took 0.67 times as long after the trial as before on ")
    assert [point.trial for point in study.front()] == [0]


@each(
    "behaviour, why",
    [
        ({"kill": ["0-1", "1-1", "1-2", "1-3"]}, "The program of the trial was ended before it had a result."),
        ({"words": {"1-1 before": "no", "1-1 after": "no"}}, "recognised other words"),
    ],
)
def test_a_killed_trial_is_repeated_and_one_with_other_words_fails(behaviour, why, tmp_path):
    study = swept(tmp_path, made(tmp_path, "search.beam=8,9", **behaviour))
    assert states(study) == ["done", "failed"]
    assert why in str(study.trials()[1].why)


def test_constraints_keep_trials_off_the_front_and_settings_that_cannot_act_fail_without_a_run(tmp_path):
    sweep = replace(made(tmp_path, "search.beam=8,10,12"), constraints=(space.parse_constraint("wer<=0.15"),))
    study = swept(tmp_path, sweep)
    assert [one.why for one in study.trials()] == ["wer is 0.3, over 0.15.", None, None]
    assert [point.trial for point in study.front()] == [1, 2]
    assert 0 not in study.confirmations
    place = tmp_path / "idle"
    study = swept(place, made(place, "frames.rule=multi-frame,conditional"))
    assert study.trials()[0].why == "frames.rule=multi-frame acts only with model = dnn (acoustic model)."
    assert study.trials()[0].state == "failed"
    assert not list((place / "study" / "trials").glob("0-*"))


@pytest.mark.slow
def test_a_full_disk_ends_the_sweep_and_the_trial_is_run_again(tmp_path, monkeypatch):
    sweep = made(tmp_path, "search.beam=8,9", full="x.asrs: No space left on device.")
    with pytest.raises(BadInput, match=r"the disk is full .* the same command goes on"):
        swept(tmp_path, sweep)
    assert states(swept(tmp_path, made(tmp_path, "search.beam=8,9"))) == ["done", "done"]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5_000_000))
    with pytest.raises(BadInput, match=r"the disk is full \(5 MB are free\)"):
        swept(tmp_path / "new", made(tmp_path / "new"))


def test_a_cancelled_trial_ends_and_progress_says_how_much_is_done_and_the_time_left(tmp_path):
    with pytest.raises(Cancelled):
        swept(tmp_path, made(tmp_path, "search.beam=8,9", busy=30), cancelled=True)
    said: list[str] = []
    study = swept(tmp_path, made(tmp_path, "search.beam=8,9"), progress=lambda stage, fraction: said.append(stage))
    assert states(study) == ["done", "done"]
    assert said[0] == "0 of 2 trials done"
    assert any(re.fullmatch(r"1 of 2 trials done, about \d+ (s|min) left", text) for text in said)
    assert said[-1] == "confirming the front, 2 of 2 done"


def test_another_study_is_refused(tmp_path):
    sweep, study = made(tmp_path), tmp_path / "study"
    with folders.opened(study, sweep):
        assert "another process" in refused(study, sweep)
    for change, sentence in (
        ({"axes": space.parse_axes(["search.beam=8,9"])}, "with another --over"),
        ({"objectives": ("rtf",)}, "with another --objectives"),
        ({"repeat": 2}, "with another --repeat"),
        ({"reference": Config(block=8)}, "with another reference (block is 16 there)"),
    ):
        assert f"holds a study {sentence}" in refused(study, replace(sweep, **change))
    (tmp_path / "u.wav").write_bytes(b"other sound")
    assert "other audio (u differs)" in refused(study, sweep)
    made(tmp_path)
    about = json.loads((study / folders.ABOUT).read_text())
    (study / folders.ABOUT).write_text(json.dumps(about | {"version": "0.0.1 abc"}))
    assert "another version of asrscope (0.0.1)" in refused(study, sweep)
    (study / folders.ABOUT).write_text("{")
    assert "is damaged" in refused(study, sweep)
    assert "is no study" in refused(tmp_path, sweep)


CHILD = """
import sys
from pathlib import Path
from test_sweep import made, swept
place = Path(sys.argv[1])
swept(place, made(place, busy=0.02))
"""


@pytest.mark.slow
def test_killed_at_any_of_twenty_times_it_goes_on_without_a_trial_lost_or_run_twice(tmp_path):
    place = tmp_path / "sweep"
    environment = children.environment()
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), str(children.ROOT)])
    log, killed, results = place / "started.txt", 0, dict[Path, int]()
    for n in range(20):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(place)], env=environment)
        begun = started(log)
        while child.poll() is None:
            if started(log) >= begun + 1 + n % 6:  # within a trial, between two, or while the front is confirmed
                time.sleep(0.02 * (n % 7))
                child.send_signal(signal.SIGKILL)
                child.wait()
                killed += 1
            time.sleep(0.002)
        for file in (place / "study").glob("*/*/result.json"):
            results.setdefault(file, file.stat().st_mtime_ns)
    assert killed >= 10
    study = swept(place, made(place))
    trials = study.trials()
    assert [one.state for one in trials] == ["done"] * 12
    chosen = {tuple(one.chosen.values()) for one in trials}
    assert chosen == {tuple(each.values()) for each in space.grid(study.sweep.axes)}
    assert all(file.stat().st_mtime_ns == written for file, written in results.items())
    assert len(list((place / "study" / "trials").glob("*/result.json"))) == 12
    on_front = {tuple(map(float, trials[point.trial].chosen.values())) for point in study.front()}
    assert on_front == true_front(study.sweep)


@pytest.mark.slow
def test_half_a_line_and_a_lock_of_a_killed_process_are_removed(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "study")
    log = tmp_path / "study" / folders.JOURNAL
    with log.open("ab") as file:
        file.write(b'{"op_code": 4, "work')
    os.symlink(log, f"{log}.lock")
    shutil.rmtree(tmp_path / "study" / "confirmed")
    assert states(swept(tmp_path, made(tmp_path, "search.beam=8,9"), trials=2)) == ["done", "done"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("finished")
    return swept(place, made(place, "search.beam=8,9"), trials=2).folder


def entry(code: object, **fields: object) -> bytes:
    return json.dumps({"op_code": code, "worker_id": "x", **fields}).encode()


@each(
    "line",
    [
        *(b"garbage", b"123", b"\xff", b"\0" * 4096, b"[" * 100_000, b"{}", b'{"op_code": 4'),
        *(entry(99), entry("x"), entry(1, study_id=0), entry(0, study_name="other", directions=[1, 1])),
        entry(4, study_id=0, datetime_start="yesterday"),
        entry(4, study_id=0, datetime_start=None, state=4, system_attrs={"fixed_params": {"search.beam": 77.0}}),
        entry(5, trial_id=2, param_name="search.beem", param_value_internal=0, distribution="{}"),
        entry(5, trial_id=2, param_name="search.beam", param_value_internal=0, distribution="[" * 9000),
        entry(6, trial_id=2, state=1, values=[0.5], datetime_complete=None),
        entry(6, trial_id=2, state=1, values=None, datetime_complete=None),
        entry(8, trial_id=2, user_attr={"figures": {"x": 1}}),
        entry(9, trial_id=2, system_attr={"constraints:wer": "x"}),
    ],
)
def test_a_damaged_line_is_named_and_the_trials_before_it_count(line, finished, tmp_path):
    sweep, study = made(tmp_path, "search.beam=8,9"), tmp_path / "study"
    shutil.copytree(finished, study)
    file = study / folders.JOURNAL
    content = file.read_bytes() + entry(4, study_id=0, datetime_start="2026-11-29T14:08:27+00:00") + b"\n"
    file.write_bytes(content + line + b"\nmore\n")
    said: list[str] = []
    with folders.opened(study, sweep, said.append) as storage:
        trials = Study(study, sweep, storage).trials()
    assert [one.state for one in trials] == ["done", "done"]
    number = content.count(b"\n") + 1
    assert said == [
        f"{file} is damaged: line {number} is none that this sweep writes. The trials before it count; "
        "it and the lines after it are in journal.damaged now."
    ]
    assert (study / folders.DAMAGED).read_bytes() == line + b"\nmore\n"
    assert file.read_bytes().startswith(content)


@each("kind", ["fifo", "zero", "folder", "link", "sparse"])
@each("name", ["journal.log", "study.json", "trials/0-1/result.json", "trials"])
def test_files_of_a_strangers_study_are_looked_at_before_they_are_read(name, kind, finished, tmp_path):
    """None is waited for, read without end or written through a link; a result that is none is made again."""
    sweep, study = made(tmp_path, "search.beam=8,9"), tmp_path / "study"
    shutil.copytree(finished, study)
    place, elsewhere = study / name, tmp_path / "elsewhere"
    shutil.move(place, elsewhere)
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    elif kind == "sparse":
        place.touch()
        os.truncate(place, 60 << 30)
    else:
        place.symlink_to("/dev/zero" if kind == "zero" else elsewhere)
    before, said = sorted(elsewhere.rglob("*")), str(place)
    try:
        trials = swept(tmp_path, sweep, trials=2).trials()
    except BadInput as problem:
        said = str(problem)
    else:
        assert [one.state for one in trials] == ["done", "done"]
    assert str(place) in said
    assert sorted(elsewhere.rglob("*")) == before


def test_names_and_paths_of_a_strangers_study_stay_in_it(finished, tmp_path):
    sweep, study = made(tmp_path, "search.beam=8,9"), tmp_path / "study"
    shutil.copytree(finished, study)
    for name in ("0-x", "0-", "0-²", "x", "1-99999999999999999999"):
        (study / "trials" / name).mkdir()
    assert [one.state for one in swept(tmp_path, sweep, trials=2).trials()] == ["done", "done"]
    (tmp_path / "elsewhere").mkdir()
    (study / "trials/9-1").symlink_to(tmp_path / "elsewhere")
    inside = partial(paths.inside, study, levels=3)
    assert inside("/elsewhere/study/trials/0-1/trial.asrs") == study / "trials/0-1/trial.asrs"
    for text in ("/tmp/x.asrs", "/dev/zero", "a/../b", "", "x", "trials/9-1/x.asrs", "a/b/\0", "../../etc/passwd"):
        assert inside(text) is None, text


@each(
    "text, sentence",
    [
        ("search.beam", "must be KEY=a,b,c or KEY=lo..hi"),
        ("search.beam=8", "at least two"),
        ("search.beam=8,much", "--over|search.beam must be"),
        ("pace=0,1", "does not change how speech is decoded"),
        ("model=a..b", "has no range"),
    ],
)
def test_bad_settings_to_vary(text, sentence):
    with pytest.raises(ConfigError, match=sentence):
        space.parse_over(text)


def test_what_is_swept_as_the_command_line_says_it():
    axes = space.parse_axes(["search.beam=8..10.5", "block=8..10", "model=ptm,continuous"])
    assert axes[0] == space.Range("search.beam", 8.0, 10.5, whole=False)
    assert axes[1] == space.Range("block", 8.0, 10.0, whole=True)
    assert axes[2] == space.Choice("model", ("ptm", "continuous"))
    assert [axis.text for axis in axes] == ["search.beam=8..10.5", "block=8..10", "model=ptm,continuous"]
    assert space.size(axes) == float("inf")
    assert space.size(axes[1:]) == 6
    assert len(space.grid(axes[1:])) == 6
    assert space.parse_constraint(" wer <= 0.2") == space.Constraint("wer", 0.2)
    for text in ("speed<=1", "wer<=low", "wer<=nan"):
        refusal("NAME<=NUMBER", space.parse_constraint, text)
    refusal("twice", space.parse_objectives, "rtf,rtf")


def test_a_front_and_what_may_be_on_it():
    points = [Point(n, v, (0.05, 0.0)) for n, v in enumerate([(1.0, 0.2), (0.5, 0.4), (1.04, 0.2), (1.2, 0.2)])]
    assert [point.trial for point in front(points)] == [1, 0]
    assert [point.trial for point in possible(points)] == [0, 1, 2]  # 1.2 is beyond the margins of both


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    """The folder of a HyperQueue server in this process, with two workers."""
    hyperqueue = pytest.importorskip("hyperqueue.cluster", reason="HyperQueue has no wheel for this system")
    folder = tmp_path / "hq"
    with hyperqueue.LocalCluster(str(folder)) as cluster:
        for _ in range(2):
            cluster.start_worker(hyperqueue.WorkerConfig(cores=1))
        yield folder


@pytest.mark.slow
def test_two_workers_of_a_server_find_the_same_front_though_trials_die(server, tmp_path):
    sweep = made(tmp_path / "sweep", "search.beam=8,9,12", "block=8,16", kill=["2-1", "4-1"])
    study = swept(tmp_path / "sweep", sweep, engine=Cluster(server, 2))
    trials = study.trials()
    assert states(study) == ["done"] * 6
    assert [Path(one.figures.session).parent.name for one in trials if one.figures] == [
        "0-1", "1-1", "2-2", "3-1", "4-2", "5-1"
    ]  # fmt: skip
    on_front = {tuple(map(float, trials[point.trial].chosen.values())) for point in study.front()}
    assert on_front == true_front(sweep)
    assert all(isinstance(outcome, Confirmed) for outcome in study.confirmations.values())


@pytest.mark.slow
def test_a_stopped_sweep_finds_its_trials_again_on_the_server(server, tmp_path):
    place = tmp_path / "sweep"
    sweep = made(place, "search.beam=8,9", busy=0.5)
    with pytest.raises(Cancelled):
        swept(place, sweep, cancelled=True, engine=Cluster(server, 2))
    assert states(swept(place, sweep, engine=Cluster(server, 2))) == ["done"] * 2
    names = (place / "started.txt").read_text().splitlines()
    assert len(names) == len(set(names))  # no command was begun twice
    assert {name.split()[0] for name in names} == {"0-1", "1-1"}


SERVER = """
import sys, time
from hyperqueue.cluster import LocalCluster, WorkerConfig
with LocalCluster(sys.argv[1]) as cluster:
    for _ in range(2):
        cluster.start_worker(WorkerConfig(cores=1))
    time.sleep(600)
"""


@pytest.mark.slow
def test_a_server_and_workers_that_are_killed_in_trials_are_replaced_by_others(tmp_path):
    pytest.importorskip("hyperqueue", reason="HyperQueue has no wheel for this system")
    place, folder = tmp_path / "sweep", tmp_path / "hq"
    sweep = made(place, "search.beam=8,9,10", busy=0.3)

    def serve() -> subprocess.Popen[bytes]:
        child = subprocess.Popen([sys.executable, "-c", SERVER, str(folder)])
        wait_until(lambda: (folder / "hq-current" / "access.json").exists() or child.poll() is not None)
        return child

    first = serve()
    killer = threading.Thread(target=lambda: (wait_until(lambda: started(place / "started.txt") >= 4), first.kill()))
    killer.start()
    with pytest.raises(BadInput, match="does not answer any more; the study is kept"):
        swept(place, sweep, engine=Cluster(folder, 2))
    killer.join()
    first.wait()
    shutil.rmtree(folder)
    second = serve()
    try:
        study = swept(place, sweep, engine=Cluster(folder, 2))
    finally:
        second.kill()
        second.wait()
    assert states(study) == ["done"] * 3
    assert len(list((place / "study" / "trials").glob("*/result.json"))) == 3


def test_a_server_that_is_not_there(tmp_path):
    pytest.importorskip("hyperqueue", reason="HyperQueue has no wheel for this system")
    access = tmp_path / "hq-current" / "access.json"
    access.parent.mkdir()
    for made_there in (lambda: None, lambda: access.write_text('{"server_uid": "old"}'), lambda: os.mkfifo(access)):
        access.unlink(missing_ok=True)
        made_there()
        with pytest.raises(BadInput, match="No HyperQueue server can be reached"):
            Cluster(tmp_path, 2)
