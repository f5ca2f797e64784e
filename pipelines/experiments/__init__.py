"""One recording decoded more than once: A/B, a session again, a verdict confirmed, other settings predicted, an audit.

Each reports; how a single decode goes stands in `run`.
"""
