"""Time on a device: its clock beside the host's, and its work put on the host's time.

No torch: a backend hands in events (`pipelines.device`).
"""
