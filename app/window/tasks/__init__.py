"""Tasks: what decodes something again, or compares recordings, while the desk stays usable. One file per task.

A task is given the main window: its session, its next run, and a place for what it shows. Not here: the main window.
"""
