"""A sweep over settings: what is tried (`space`), its front, the study that keeps it (`study`) and where trials run.

`trial` is the program of one trial; `home` runs it on this machine or on the workers of a HyperQueue server.
"""
