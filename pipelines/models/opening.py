"""The acoustic model that a configuration asks for, with its front end: read from files, or derived and cached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.frontend.kaldi import KaldiMfcc
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import continuous, kaldi, single_stream, sphinx
from pipelines.models.derived import Progress
from pipelines.models.errors import ModelError
from pipelines.models.sphinx import AcousticModel

if TYPE_CHECKING:
    from pipelines.config import Config

FrontEnd = Mfcc | KaldiMfcc


def open_model(
    config: Config,
    progress: Progress = lambda title, fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> AcousticModel:
    """The model for `model`, `model_directory` and `gmm.components` of a pipelines.config.Config.

    A directory with a continuous model is taken as it is, except that several streams are made one if the
    settings say so; one with a net needs `model` to be dnn.
    Raises ModelError or FeatureParameterError (one sentence each) or Cancelled.
    """
    base = read_model(Path(config.model_directory or sphinx.default_directory()))
    if base.kaldi is not None and base.kaldi.net is not None:
        if config.model != "dnn":
            raise ModelError(
                f"{config.model_directory} is a neural net (nnet3): model=dnn scores with it, model={config.model} is "
                "for mixtures."
            )
        return base
    if config.model == "continuous":
        return continuous.untied(base, config.gmm.components, progress, cancelled)
    if config.model == "single-stream":
        return single_stream.best(base, config.gmm.components, progress, cancelled)
    return base


def read_model(directory: Path) -> AcousticModel:
    """The model in a folder, of the kind that its files say: Kaldi's or CMUSphinx'; raises as `open_model`."""
    return kaldi.load(directory) if kaldi.lies_in(directory) else sphinx.load(directory)


def front_end(model: AcousticModel) -> FrontEnd:
    """What makes the features of `model`; FeatureParameterError where it cannot."""
    if model.kaldi is not None:
        its = model.kaldi
        return KaldiMfcc(its.features, model.transform, its.ivectors, its.cmvn, its.pacing)
    return Mfcc(model.feat_params, transform=model.transform)
