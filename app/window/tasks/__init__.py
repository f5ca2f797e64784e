"""Tasks: what decodes something again, or compares recordings, while the desk stays usable. One file per task.

A task is given a `Workbench`: the session, the scope, and a place for its result. Not here: the main window.
"""
