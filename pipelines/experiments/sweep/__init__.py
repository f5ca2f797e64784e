"""A sweep over settings: what is tried (`space`), the study that keeps it (`study`), its front, and where trials run.

`trial` is the program of one trial; `home` runs it on this machine, `cluster` on the workers of a HyperQueue server.
"""
