"""The machine underneath: what it is, what it can do at best, and how busy it is.

`describe` names it, `roofs` measures what it can do, `sampler` watches load and memory while a run goes on.
No workload and no session logic here; what cannot be read is absent, never zero.
"""
