"""Gaussian selection: the strategies, by the names that `gmm.selection.method` gives them.

A strategy turns features into senone scores. A module holds the class `Tied`, for models whose senones share
codebooks (`scoring.tied`), or `Continuous`, for models whose senones own their Gaussians (`scoring.continuous`), or
both, each a `scoring.strategy.Strategy`. To add one: a module here, its classes below, the method's name in the
configuration, a test.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from pipelines.scoring.selection import clusters, none, top_n, vq, vq_table
from pipelines.scoring.strategy import Kind, Maker

EXACT: Final = "none"

METHODS: Final[Mapping[Kind, Mapping[str, Maker]]] = {
    "Tied": {
        "clusters": clusters.Tied,
        "last-top-n": partial(top_n.Tied, follow=True),
        EXACT: none.Tied,
        "top-n": top_n.Tied,
        "vq": vq.Tied,
        "vq-table": vq_table.Tied,
        "vq-tree": partial(vq.Tied, by_tree=True),
    },
    "Continuous": {
        "clusters": clusters.Continuous,
        "last-top-n": partial(top_n.Continuous, follow=True),
        EXACT: none.Continuous,
        "top-n": top_n.Continuous,
        "vq": vq.Continuous,
        "vq-table": vq_table.Continuous,
        "vq-tree": partial(vq.Continuous, by_tree=True),
    },
}
"""What makes a strategy of a family (its parameters and workspace), by the family's kind and the method's name."""
