"""Scoring on a device, in torch: mixtures and nets, their parameters and buffers.

No kernels of numba; where it stands and what is copied is decided by `placement.*`.
"""
