"""What crosses into the search's kernels: the table of its arrays, which live as long as it is used."""

from typing import get_type_hints

import numpy as np
import pytest
from search_graphs import random_graph

from pipelines.search.kernels import calls
from pipelines.search.kernels.intrinsics import arrays_in
from pipelines.search.kernels.layout import KINDS, NUMBERS, Arrays, Numbers
from pipelines.search.kernels.numba_flags import njit_called
from pipelines.search.kernels.table import table
from pipelines.search.workspace import Workspace
from profiler.arrays import ArrayError


@pytest.fixture
def space():
    return Workspace(random_graph(3, True))


def test_every_array_has_its_kind():
    assert tuple(KINDS) == Arrays._fields
    groups = get_type_hints(Arrays)
    for name, kinds in KINDS.items():
        assert len(kinds) == len(groups[name]._fields), name


def test_numbers_are_found_by_name():
    assert NUMBERS.names == Numbers._fields


def test_kernels_find_the_settings_of_now(space):
    @njit_called
    def read(table):
        held = calls.numbers_of(calls.named(table))
        return (
            (held.n_epsilon_states, held.n_ranks, held.lattice_beam, held.penalty),
            (held.beam, held.beam_delta, held.max_active, held.min_active),
        )

    first, rest = space.call(read)
    assert (*first, *rest) == space.numbers
    space.prune_by(7.5, 0.25, 321, 12)
    space.charge(1.5)
    first, rest = space.call(read)
    assert (*first, *rest) == space.numbers
    assert space.numbers[3:] == (1.5, 7.5, 0.25, 321, 12)
    # In other arrays as well.
    books = space.books._replace(numbers=np.zeros_like(space.books.numbers))
    space.hold(space.arrays._replace(books=books))
    first, rest = space.call(read)
    assert (*first, *rest) == space.numbers


def test_kernels_find_rows_and_numbers_where_they_lie():
    columns = np.arange(5, dtype=np.float32), np.arange(6, dtype=np.int32).reshape(2, 3)
    rows = np.array([(a.ctypes.data, len(a)) for a in columns], np.int64)
    groups = ((np.dtype("f4"),), (np.dtype("3i4"),))
    arrays_at = arrays_in(groups)

    @njit_called
    def swap(table):
        (line,), (pairs,) = arrays_at(table)
        pairs[1, 2] = len(line)
        line[4] = pairs[1, 0]
        return len(line), pairs.shape[0], pairs.shape[1], line[3]

    assert swap(rows) == (5, 2, 3, 3.0)
    assert columns[1][1, 2] == 5
    assert columns[0][4] == 3.0


@pytest.mark.parametrize("group", Arrays._fields)
def test_a_table_of_other_arrays_is_refused(space, group):
    held = getattr(space.arrays, group)
    for i, column in enumerate(held):
        scattered = np.repeat(np.resize(column, (2, *column.shape[1:])), 2, axis=0)[::2]
        of_another_kind = np.zeros(column.shape, np.complex64)
        for other in (of_another_kind, scattered, column[None], column.tolist()):
            spoilt = held._replace(**{held._fields[i]: other})
            with pytest.raises(ArrayError, match=rf"{group}\[{i}\]"):
                table(space.arrays._replace(**{group: spoilt}))
