"""Last top-N (pocketsphinx): the best Gaussians of the last frame first, the others only as far as they can win.

Neighbouring frames have mostly the same best Gaussians, so these give at once a bound that lets most others be
eliminated after a few dimensions (partial distances). The N best, and so the scores, are those of `top-n`.
"""

from __future__ import annotations

from pipelines.scoring.selection import top_n


class Tied(top_n.Tied):
    """The N best densities of each codebook and stream."""

    follow = True


class Continuous(top_n.Continuous):
    """The N best components of each senone and stream."""

    follow = True
