"""The steps of `bench device`, each in a process of its own (`python -m tests.bench.device_steps STEP DEVICE …`).

A step answers with a `Found`: whether it proved what it is for (None: it cannot be proved here), why, and figures. What
breaks a step, a device that is lost among it, breaks no other.
"""
