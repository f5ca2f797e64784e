"""Of the senones that the search asks for, those whose parent scores well: what Sphinx-3 does.

The cap counts the senones asked for alone, as Sphinx-3 counts the active children of a parent.
"""

from __future__ import annotations

from pipelines.scoring.senones._backoff import ByParent


class Rule(ByParent):
    """By the parents' scores, among those asked for."""

    lazy = True
