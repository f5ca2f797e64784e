"""The one exception of the readers of acoustic models."""

from profiler.errors import BadInput


class ModelError(BadInput):
    """A model file cannot be used; the message is one sentence naming file and field."""
