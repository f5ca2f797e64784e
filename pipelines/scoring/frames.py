"""Frame layer: the rules that say which frames are scored; the others repeat the last computed scores.

After Chan, Ravishankar and Rudnicky (2004). To add a rule: a class here, its name in `RULES` and in the configuration,
a test.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from pipelines.config import Config
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.blocks import Meter
from pipelines.scoring.clustering.quantiser import STAGE, Codewords, codewords_of
from pipelines.scoring.costs import selection as laws
from pipelines.scoring.strategy import Cancelling, Made, Need, Progress
from profiler.arrays import Array
from profiler.spans import Cost

NONE = -1  # no codeword: no frame before


class FrameRule:
    """Plain down-sampling, Sphinx' `-ds`: frame numbers of the utterance that are divisible by `frames.skip`.

    The base of all rules; it prepares and keeps nothing. With a multi-frame net (Vanhoucke, Devin and Heigold 2013) it
    says which frames go through the hidden layers; what the heads compute of the others is up to `scoring.dnn`.
    """

    stages: Mapping[str, tuple[str, ...]] = {}  # The stages it records, and their work counts

    def __init__(self, model: AcousticModel) -> None:
        self._model = model

    def needs(self, config: Config) -> Need | None:
        return None

    def configure(self, config: Config, prepared: Made = None) -> None:
        """Work by the settings `config` from the next block on."""

    def reset(self) -> None:
        """An utterance begins, or frames went by without being shown to the rule."""

    def choose(self, features: Array, first: int, skip: int, meter: Meter) -> Array:
        """Bool [n]: whether each of these frames f32 [n, dim] is scored; of an utterance the first is in any case.

        `first` counts the utterance's frames before these; `skip` ≥ 2 is `frames.skip`.
        """
        return np.arange(first, first + len(features)) % skip == 0  # type: ignore[no-any-return]

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of the stages that `choose` records, for blocks of `frames` frames."""
        return {}


class Conditional(FrameRule):
    """Conditional down-sampling, Sphinx-3's `-cond_ds`: a frame is skipped only while the sound stays the same.

    A frame repeats the scores of the last computed one if its nearest codeword is that of the frame before and fewer
    than `skip` − 1 frames in a row were skipped. Finding the codeword is a stage of its own.
    """

    stages: Mapping[str, tuple[str, ...]] = {STAGE: ("codewords",)}

    def __init__(self, model: AcousticModel) -> None:
        super().__init__(model)
        self._codebook: Codewords | None = None
        self.reset()

    def needs(self, config: Config) -> Need | None:
        return Need(int(config.frames.codewords), partial(self._make, config.frames.codewords))

    def _make(self, size: int, progress: Progress, cancelled: Cancelling) -> Codewords:
        """The codebook of `size` codewords, with what finds the nearest one compiled."""
        found = codewords_of(self._model, size, progress, cancelled)
        found.nearest(np.zeros((1, found.book.words.shape[2]), np.float32), Meter())
        return found

    def configure(self, config: Config, prepared: Codewords | None = None) -> None:
        if prepared is not self._codebook:
            self._codebook = prepared
            self.reset()

    def reset(self) -> None:
        self._codeword, self._skipped = NONE, 0

    def choose(self, features: Array, first: int, skip: int, meter: Meter) -> Array:
        assert self._codebook is not None, "configure gives it a codebook before the first frame"
        codewords = self._codebook.nearest(features, meter)
        chosen = np.empty(len(codewords), np.bool_)
        for t, codeword in enumerate(codewords.tolist()):
            scored = codeword != self._codeword or self._skipped >= skip - 1
            self._skipped = 0 if scored else self._skipped + 1
            self._codeword = codeword
            chosen[t] = scored
        return chosen

    def costs(self, frames: int) -> dict[str, Cost]:
        return {} if self._codebook is None else {STAGE: laws.frame_codewords(self._codebook.book)}


RULES: Final[dict[str, type[FrameRule]]] = {"conditional": Conditional, "copy": FrameRule, "multi-frame": FrameRule}
"""As `frames.rule` names them."""
