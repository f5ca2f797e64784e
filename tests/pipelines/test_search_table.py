"""What crosses into the search's kernels: the table of its arrays, which live as long as it is used."""

from typing import get_type_hints

import numpy as np
import pytest
from search_graphs import random_graph

from pipelines.search.kernels.layout import KINDS, NUMBERS, Arrays, Numbers
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
