"""The steps of `bench device`, each in a process of its own (`python -m tests.bench.device_steps STEP DEVICE …`).

A step returns a `Result`: whether it proved its claim (None: it cannot be proved here), why, and figures. A step that
breaks, or loses the device, breaks no other.
"""
