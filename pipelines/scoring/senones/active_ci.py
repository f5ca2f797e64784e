"""Of the active senones only those whose parent scores well, as Sphinx-3.

The cap counts the active senones alone, as Sphinx-3 counts the active children of a parent.
"""

from __future__ import annotations

from pipelines.scoring.senones._backoff import ByParent


class Rule(ByParent):
    """By the parents' scores, among the active senones."""

    lazy = True
