"""A run from start to end: what is decoded, the recogniser made ready, the decode loop, changes while it runs.

What is computed stands in `frontend`, `scoring` and `search`; what is recorded, in `profiler`.
"""
