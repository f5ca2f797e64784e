"""The acoustic model and the speech that the program ships, read once for all tests of a process."""

from functools import cache

from pipelines.audio import loading
from pipelines.config import presets
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import sphinx
from pipelines.models.sphinx import AcousticModel
from profiler.arrays import Array


@cache
def model() -> AcousticModel:
    return sphinx.load(sphinx.default_directory())


@cache
def speech() -> Array:
    """Features f32 [frames, 39] of the first three quarters of a second of the first bundled file."""
    sound = loading.load(min(presets.assets.path("speech").glob("*.flac")))
    features: Array = Mfcc(model().feat_params).features(sound.samples[:12_000])
    return features
