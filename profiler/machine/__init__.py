"""The machine: what it is, its limits, and how busy it is.

`describe` names it, `roofs` measures its limits, `sampler` watches load and memory during a run.
No workload and no session logic here; unreadable values are absent, never zero.
"""
