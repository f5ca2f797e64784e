"""Shared by all tests: a cache of their own, and the real human speech where it lies next to the checkout."""

import gc
import os
import random
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Before anything imports Qt: without a display it would abort the interpreter.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# Hundreds of processes are started: each would compile every module anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Threads of a library that wait for the next product wait asleep: the tests run on every core already.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # 2 to that power cycles, the least it takes

# A machine that runs the tests under nohup has them ignore this signal, and every child of theirs.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

CHECKOUT = Path(__file__).parents[1]
SHARED = CHECKOUT.parent / "shared"

# Graphs and peaks are kept between runs of the tests, apart from those of the person who runs them.
KEPT = CHECKOUT / ".pytest_cache" / "asrscope"
os.environ["ASRSCOPE_CACHE"] = str(KEPT / "cache")
os.environ["ASRSCOPE_SESSIONS"] = str(KEPT / "sessions")
# Compiled kernels too, and for tests that have a cache of their own.
os.environ["NUMBA_CACHE_DIR"] = str(KEPT / "cache" / "kernels")


def pytest_configure(config: pytest.Config) -> None:
    """The same examples on every run of CI, unless a seed asks for others; `make test-all` tries more."""
    same = bool(os.environ.get("CI")) and config.getoption("--hypothesis-seed") is None
    tried = 30 if config.option.markexpr == "not slow" else 100
    # No deadline: machines are busy at times.
    settings.register_profile("here", derandomize=same, deadline=None, max_examples=tried)
    settings.load_profile("here")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is there once all tests are, stays: looking it through for garbage again and again took a tenth of the run.

    With torch, numba and Qt among it, it is over a million objects. Tests that want garbage collected say so.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        set_aside()
        # A run takes back at its end what it has set aside, and all of this with it.
        gc.freeze = gc.unfreeze = lambda: None
        gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


set_aside = gc.freeze  # What is there now stays, and is not looked through for garbage


YOUNG = 20_000
"""Objects between two looks for garbage: compiling kernels makes millions, few of them garbage in a circle."""

LONGEST = (
    "test_kernel_walls", "test_kernel_fences", "test_hostile_desk", "test_first_ten_seconds",
    "test_search_cuda", "test_cli_capacity", "test_sweep", "test_cli_sweep", "test_cli_on_host", "test_remote",
    "test_campaign", "test_cost_laws", "test_training_workers", "test_scoring_dnn_live", "test_worker",
    "test_cli_streams", "test_keyboard_only", "test_cli_compare", "test_cli_whatif",
    "test_order", "test_cli", "test_cli_signals", "test_window_hover", "test_run",
    "test_models_foreign", "test_session_fuzz", "test_one_figure", "test_window_exporting",
    "test_window", "test_lab_cli", "test_faults", "test_text_geometry", "test_hot_replay_run", "test_window_keys",
    "test_scoring_gmm", "test_perturb", "test_session_crash", "test_counters_report",
    "test_labs_kernels", "test_labs_decoding", "test_labs_nets", "test_labs_caches",
    "test_labs_training", "test_labs_device",
)  # fmt: skip
"""Files of ten seconds of computing and more, where nothing is cached: begun last, one of them would be waited for.

What has many short processes comes later than COMPILING: each of them would compile for itself meanwhile.
"""
COMPILING = LONGEST[:2]  # They compile kernels that the others need: one those of the search, one those of scoring


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files come first, each for one process (`--dist loadfile`).

    With `--hypothesis-seed`, the files and the tests of each file come in an order of that seed. Only of the longest
    none is left for the end, where the other process would wait for it, and what compiles for the others comes first:
    both processes, and many that they start, would compile the same kernels.
    """
    seed = config.getoption("--hypothesis-seed")
    if seed is None:
        last = len(LONGEST)
        items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else last)
        return
    draw = random.Random(str(seed))
    files = sorted({item.path for item in items})
    draw.shuffle(files)
    last = len(files) - len(files) // 5
    early = [path for path in files if path.stem in COMPILING]
    early += [path for path in files[last:] if path.stem in LONGEST and path not in early]
    files = early + [path for path in files if path not in early]
    shuffled = [(files.index(item.path), draw.random(), item) for item in items]
    items[:] = [item for *_, item in sorted(shuffled, key=lambda entry: entry[:2])]


@pytest.fixture(scope="module", autouse=True)
def variables_as_found() -> Iterator[None]:
    """What a file's tests set for the process they run in ends with them: the next file may run in the same one.

    A command that draws without a display says so to Qt, and a campaign has a cache of its own.
    """
    found = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(found)


@pytest.fixture(scope="module", autouse=True)
def kept_set_aside() -> None:
    """What a file before has loaded is not looked through by every run of this one, before it begins to decode."""
    gc.collect()
    set_aside()


@pytest.fixture(scope="session", autouse=True)
def spans_measured_briefly() -> Iterator[None]:
    """What a span costs is measured whenever a session begins, of which there are hundreds: on fewer spans here."""
    from profiler.recording import lanes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "MEASURE_PUTS", lanes.MEASURE_PUTS // 10)
        yield


@pytest.fixture(scope="session")
def shared_audio() -> Path:
    """The folder of real human speech; tests that need it are skipped where it is not."""
    folder = SHARED / "audio"
    if not (folder / "transcripts.tsv").exists():
        pytest.skip("no human speech next to this checkout")
    return folder


@pytest.fixture(scope="session")
def shared_models() -> Path:
    """The folder of small real Kaldi models; tests that need it are skipped where it is not."""
    folder = SHARED / "models"
    if not (folder / "README.md").exists():
        pytest.skip("no real models next to this checkout")
    return folder


@pytest.fixture(scope="session")
def bundled_speech() -> Path:
    """The shipped synthetic voices."""
    import assets

    return assets.path("speech")
