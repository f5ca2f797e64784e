"""The acoustic model that a configuration asks for: opened from its files, or derived from them and cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipelines.models import continuous, single_stream, sphinx
from pipelines.models.derived import Progress
from pipelines.models.sphinx import AcousticModel

if TYPE_CHECKING:
    from pipelines.config import Config


def open_model(
    config: Config,
    progress: Progress = lambda title, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> AcousticModel:
    """The model for `model`, `model_directory` and `gmm.components` of a pipelines.config.Config.

    A directory with a continuous model is taken as it is, except that several streams are made one if the
    settings say so. Raises ModelError or FeatureParameterError (one sentence each) or Cancelled.
    """
    base = sphinx.load(config.model_directory or sphinx.default_directory())
    if config.model == "continuous":
        return continuous.untied(base, config.gmm.components, progress, cancelled)
    if config.model == "single-stream":
        return single_stream.best(base, config.gmm.components, progress, cancelled)
    return base
