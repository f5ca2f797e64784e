"""The desk: windows, views, actions, pictures and the command line (the top floor).

The window shows session files and sends commands to the worker process; it never runs the workload.
What must not live here: measuring, scoring, searching. The command line imports Qt only on demand.
"""
