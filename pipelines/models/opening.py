"""The acoustic model that a configuration asks for, with its front end: read from files, or derived and cached."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.config import recommended
from pipelines.frontend.kaldi import KaldiMfcc
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import derived, kaldi, single_stream, sphinx
from pipelines.models.ctc import opening as ctc_files
from pipelines.models.ctc.front_end import CtcFrontEnd
from pipelines.models.derived import Progress
from pipelines.models.errors import ModelError
from pipelines.models.sphinx import AcousticModel, ModelDefinition

if TYPE_CHECKING:
    from pipelines.config import Config

FrontEnd = Mfcc | KaldiMfcc | CtcFrontEnd


def open_model(
    config: Config, progress: Progress = lambda title, fraction: None, cancelled: Callable[[], bool] = lambda: False
) -> AcousticModel:
    """The model for `model`, `model_directory` and `gmm.components`; ModelError, FeatureParameterError or Cancelled.

    A directory with a continuous model is taken as it is, except that several streams are made one if the settings say
    so; one with a net needs `model` to be dnn.
    """
    if config.model == "ctc":
        return ctc_model(config.model_directory, config.ctc.dtype, config.threads, cancelled)
    base = read_model(Path(config.model_directory or sphinx.default_directory()))
    if base.kaldi is not None and base.kaldi.net is not None:
        if config.model != "dnn":
            raise ModelError(
                f"{config.model_directory} is a neural net (nnet3): model=dnn scores with it, model={config.model} is "
                "for mixtures."
            )
        return base
    if config.model == "continuous":
        return derived.untied(base, config.gmm.components, progress, cancelled)
    if config.model == "single-stream":
        return single_stream.best(base, config.gmm.components, progress, cancelled)
    return base


def read_model(directory: Path) -> AcousticModel:
    """The model in a folder, of the kind that its files say: Kaldi's or CMUSphinx'; raises as `open_model`."""
    if recommended.is_ctc(str(directory)):
        raise ModelError(f"{directory} has a CTC net: model=ctc scores with it.")
    return kaldi.load(directory) if kaldi.lies_in(directory) else sphinx.load(directory)


def ctc_model(
    directory: str, dtype: str = "stored", threads: int = 1, cancelled: Callable[[], bool] = lambda: False
) -> AcousticModel:
    """The CTC net of a folder, or if none is named of the package hama, with units for senones; as `open_model`."""
    net = replace(ctc_files.load(directory, cancelled), dtype=dtype, threads=threads)
    units, takes = len(net.units.symbols), net.input
    none = np.empty((0, 1, 0, 0), np.float32)
    each, way = 10 * takes.each, "whole utterances" if net.whole else f"chunks of {takes.shift * 10} ms with states"
    name = net.path.parent.name if directory else "hama"
    return AcousticModel(
        directory=net.path.parent,
        kind="ctc",
        mdef=ModelDefinition(
            list(net.units.symbols),
            units,
            senone_phone=np.arange(units, dtype=np.int32),
            senone_state=np.zeros(units, np.int32),
            filler=np.zeros(units, bool),
            silence=net.units.blank,
        ),
        means=none,
        variances=none,
        weights=np.empty((1, 0, units), np.float32),
        checksum=hashlib.sha256(net.content).hexdigest(),
        widths=(units,),
        origin=f"CTC net {name}",
        notes=(
            f"{name}: CTC net {net.path.name} ({takes.layout}) of {units:,} units with the blank "
            f"{net.units.symbols[net.units.blank]!r}, an output for {each} ms; it takes {way}, {takes.rate:,} Hz",
        ),
        ctc=net,
    )


def front_end(model: AcousticModel) -> FrontEnd:
    """What makes the features of `model`, and of a CTC net its scores; FeatureParameterError where it cannot."""
    if model.ctc is not None:
        return CtcFrontEnd(model.ctc)
    if model.kaldi is not None:
        its = model.kaldi
        return KaldiMfcc(its.features, model.transform, its.ivectors, its.cmvn, its.pacing)
    return Mfcc(model.feat_params, transform=model.transform)
