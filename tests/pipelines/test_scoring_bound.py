"""What kernels are bound to: parameters that do not belong to each other, or lead beyond themselves, are refused."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from selection_reference import KINDS, configured

from pipelines.config import Config, assign
from pipelines.frontend.parameters import STREAM_DIM, STREAMS
from pipelines.scoring import selection
from pipelines.scoring.blocks import Meter
from pipelines.scoring.gaussians.int8 import in_int8
from pipelines.scoring.gaussians.product import rests
from pipelines.scoring.senones import Parents
from pipelines.scoring.strategy import warm_up
from pipelines.scoring.thread_pool import BlockPool
from profiler.arrays import ArrayError
from profiler.process.children import environment, python
from tests.each import each

HERE = Path(__file__).parent


def test_the_bytes_of_one_codebook_are_not_those_of_all(families) -> None:
    gmm = families["tied"]
    one = in_int8(gmm.parameters.gaussians[:1])
    with pytest.raises(ArrayError, match="gaussians"):
        selection.METHODS["Tied"]["none"](gmm).configure(assign(Config(), {"gmm.component": "int8"}).gmm, one)
    strategy = selection.METHODS["Tied"]["top-n"](gmm)
    by_bound = assign(Config(), {"gmm.component": "partial-distance"}).gmm
    with pytest.raises(ArrayError, match="rest"):
        strategy.configure(by_bound, rests(gmm.small().parameters.gaussians))


@each("kind", ["tied", "untied"])
@each("method", ["vq", "vq-table", "clusters", "last-top-n"])
def test_what_was_prepared_for_a_part_is_not_taken_for_the_whole(families, kind, method) -> None:
    family = families[kind]
    strategy, _ = configured(family, method)
    _, of_a_part = configured(family.small(), method)
    gmm = type("Settings", (), {"component": "exact"})
    gmm.selection = type("Selection", (), {"top_n": 4, "expand": 2})
    with pytest.raises(ArrayError):
        strategy.configure(gmm, of_a_part)


@each("kind", KINDS)
@each("method", list(selection.METHODS["Tied"]))
def test_a_warm_up_that_fails_leaves_what_scores_as_it_was(families, kind, method) -> None:
    family = families[kind]
    strategy, _ = configured(family, method)
    features = np.random.default_rng(1).normal(0, 3, (5, 39)).astype(np.float32)
    before, after = (np.empty((5, family.n_senones), np.float32) for _ in range(2))
    strategy.score(features, before, Meter())
    held = dict(vars(strategy))
    for scores in (np.empty((5, family.small().n_senones), np.float32), np.empty((4, 1), "f")):
        with contextlib.suppress(ArrayError):
            warm_up(selection.METHODS[family.kind][method](family.small()), Config().gmm, features, scores)
        assert all(vars(strategy)[name] is value for name, value in held.items())
    strategy.score(features, after, Meter())
    np.testing.assert_array_equal(before, after)


def test_indices_from_a_cache_lead_to_what_there_is(families) -> None:
    family = families["tied"]
    gaussians, slots = family.parameters.gaussians, family.parameters.gaussians.shape[2]
    _, lists = configured(family, "vq")
    _, clustered = configured(family, "clusters")
    book = lists.codebook

    def damaged(array, value):
        wrong = array.copy()
        wrong.flat[-1] = value
        return wrong

    with pytest.raises(ArrayError, match="items"):
        dataclasses.replace(lists, items=damaged(lists.items, slots)).check_for(gaussians)
    for value in (-1, len(lists.items) + 1):
        with pytest.raises(ArrayError, match="start"):
            dataclasses.replace(lists, start=damaged(lists.start, value))
    with pytest.raises(ArrayError, match="lists"):
        dataclasses.replace(lists, start=damaged(lists.start, lists.start.flat[-2])).check_for(gaussians)
    with pytest.raises(ArrayError, match="lists"):
        dataclasses.replace(lists, start=lists.start[:, :, :-1].copy()).check_for(gaussians)
    with pytest.raises(ArrayError, match="of_panel"):
        dataclasses.replace(clustered, of_panel=damaged(clustered.of_panel, clustered.count))
    for value in (book.planes.shape[1], ~book.size):
        with pytest.raises(ArrayError, match="tree"):
            dataclasses.replace(book, children=damaged(book.children, value))


def test_a_way_down_a_tree_never_leads_back(families) -> None:
    book = configured(families["tied"], "vq-tree")[1].codebook
    children = book.children.copy()
    children[0, 0, 0] = 0
    with pytest.raises(ArrayError, match="leads back"):
        dataclasses.replace(book, children=children)


def test_a_packed_model_has_each_senone_once(families) -> None:
    p = families["tied"].parameters
    for name, place, value in (
        ("start", 1, 7),
        ("start", -1, 1 << 40),
        ("runs", (0, 0), p.n_senones),
        ("runs", (0, 2), 0),
        ("run_start", -1, 0),
    ):
        wrong = getattr(p, name).copy()
        wrong[place] = value
        with pytest.raises(ArrayError):
            dataclasses.replace(p, **{name: wrong})
    with pytest.raises(ArrayError):
        dataclasses.replace(p, weights=p.weights[:-16])


def test_parents_are_senones() -> None:
    with pytest.raises(ArrayError):
        Parents(np.array([0, 3]), np.zeros(3, np.int32))
    with pytest.raises(ArrayError):
        Parents(np.array([0]), np.array([0, 1, 0], np.int32))


@each("threads", [1, 2, 3, 7, 64])
def test_every_thread_has_a_range_of_its_own(threads) -> None:
    for work in ([1], [1000, 1, 1], [1, 1, 1000], [1] * 5, [0, 5, 0, 5]):
        pool = BlockPool(threads, np.array(work))
        assert [a for a, _ in pool.ranges] == [0, *(b for _, b in pool.ranges[:-1])]
        assert pool.ranges[-1][1] == len(work)
        assert all(a < b for a, b in pool.ranges)
        assert pool.threads == len(pool.ranges)


def test_features_for_more_frames_than_there_is_room_are_refused(families) -> None:
    for kind in ("tied", "untied"):
        with pytest.raises(ArrayError, match="expand"):
            families[kind].expand(np.zeros((65, STREAMS * STREAM_DIM), np.float32))


@pytest.mark.skipif(not hasattr(signal, "SIGSEGV"), reason="needs pages with rights")
@pytest.mark.parametrize("side", ["behind", pytest.param("before", marks=pytest.mark.slow)])
def test_warm_up_stays_within_every_array_of_the_process(side, tmp_path) -> None:
    made = environment({"ASRSCOPE_CACHE": str(tmp_path)})
    made["PYTHONPATH"] = f"{HERE.parents[1]}:{HERE}"
    command = python(str(HERE / "warm_ups.py"), side)
    done = subprocess.run(command, env=made, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["tied", "one", "three"]


def test_a_codebook_of_codewords_knows_its_arrays(families) -> None:
    book = configured(families["tied"], "vq")[1].codebook
    for name in ("scale", "children", "panels"):
        with pytest.raises(ArrayError, match=name):
            dataclasses.replace(book, **{name: getattr(book, name)[:, :-1].copy()})
