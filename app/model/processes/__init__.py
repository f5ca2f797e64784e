"""The processes that the window starts and talks to: the worker of a run, the look for devices.

What comes of a run is read from its session, not from here.
"""
