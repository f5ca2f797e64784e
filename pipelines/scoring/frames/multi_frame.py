"""Multi-frame net: frames are chosen as plain down-sampling does; the others have heads of the net for themselves.

After Vanhoucke, Devin and Heigold (2013). What the heads compute is up to `scoring.dnn`.
"""

from __future__ import annotations

from pipelines.scoring.frames import copy


class Rule(copy.Rule):
    """Frame numbers divisible by `skip`: those that go through the hidden layers."""
