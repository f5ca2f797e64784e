"""The one exception of the readers of acoustic models."""

from __future__ import annotations

from profiler.errors import BadInput


class ModelError(BadInput):
    """A model file cannot be used; the message is one sentence naming file and field."""
