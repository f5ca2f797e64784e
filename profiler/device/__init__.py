"""Time on a device: its clock relative to that of the host, and its work in host time.

No torch: a backend passes in events (`pipelines.device`).
"""
