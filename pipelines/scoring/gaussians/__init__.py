"""Gaussians as rows of a matrix product: what tied and continuous models, and what selection prepares, have in common.

No model's layout is known here; `tied` and `continuous` build on this room.
"""
