"""Codebooks, codewords, clusters and shortlists of Gaussians, from which selection is prepared.

How a strategy uses them stands in `selection`.
"""
