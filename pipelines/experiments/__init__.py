"""One recording decoded more than once: A/B, again, a verdict confirmed, settings predicted, an audit, a sweep.

Each reports; how a single decode goes stands in `run`.
"""
