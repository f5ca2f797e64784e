"""Recording spans: lanes and their layout in memory, from Python and from compiled kernels.

What reads, stores or explains spans does not live here.
"""
