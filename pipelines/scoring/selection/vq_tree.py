"""VQ shortlists whose codeword is found in a binary tree: the dictionary that lectures on VQ describe.

The same lists as `vq`; going down the tree compares 2·log₂ K codewords and not K, and mostly, but not always,
arrives at the nearest.
"""

from __future__ import annotations

from pipelines.scoring.selection import vq


class Continuous(vq.Continuous):
    """Panels of one Gaussian of each of 16 senones."""

    by_tree = True


class Tied(vq.Tied):
    """Gaussians of shared codebooks."""

    by_tree = True
