"""Tied-mixture models: parameters laid out for the kernels, and the kernels.

Which Gaussians are computed is decided in `selection`, for which senones in `senones`.
"""
