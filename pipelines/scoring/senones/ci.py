"""Context-independent senones first; the others only where their parent scores well (see `_backoff`).

Decided for all senones of a block at once, whether active or not: frame by frame, batching would be lost.
"""

from __future__ import annotations

from pipelines.scoring.senones._backoff import ByParent


class Rule(ByParent):
    """By the parents' scores alone."""
