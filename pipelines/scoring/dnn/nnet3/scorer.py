"""The scorer of a model that has a net of its own: Kaldi's nnet3.

Frame skipping leaves out rows of scores: their last layers, from the last one that looks at several times on, are not
computed. Active senones are those of the last layer.
"""

from collections.abc import Hashable

from pipelines.config import Config
from pipelines.config.dnn import Dnn
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.dnn.nnet3.net import Nnet3Net
from pipelines.scoring.dnn.nnet3.plan import plan
from pipelines.scoring.dnn.scorer import HEADS, DnnScorer, Ready, try_out
from pipelines.scoring.strategy import Cancelling, Progress, never, quietly
from profiler.arrays import Array

NEEDED = {"net": Dnn().net, "shrink": Dnn().shrink}  # The settings of `dnn` that leave the model's net as it is


def own_net(model: AcousticModel) -> bool:
    return model.kaldi is not None and model.kaldi.net is not None


class Nnet3Scorer(DnnScorer):
    """Scores by the net of the model."""

    def __init__(
        self, config: Config, model: AcousticModel, progress: Progress = quietly, cancelled: Cancelling = never
    ) -> None:
        """Raises ModelError when the settings ask for what the net cannot do, or Cancelled."""
        assert model.kaldi is not None and model.kaldi.net is not None, "`own_net` says so"  # noqa: PT018
        self.subsampling = model.subsampling
        self._plan = plan(model.kaldi.net, self.subsampling)
        self._name = model.directory.name
        super().__init__(config, model, progress, cancelled)

    def _input(self, block: Array) -> Array:
        assert isinstance(self._net, Nnet3Net)
        self._net.begin = self._frame * self.subsampling
        return super()._input(block)

    def _key(self, config: Config) -> Hashable:
        chosen = config.dnn
        product = chosen.product if chosen.dtype == "fp32" else None
        return chosen.dtype, product, config.threads, chosen.context

    def _refusal(self, config: Config) -> str:
        chosen, its = config.dnn, f"{self._name} is a net of Kaldi (nnet3)"
        for name, needed in NEEDED.items():
            if (asked := getattr(chosen, name)) != needed:
                return f"{its}: dnn.{name}={asked} is for other nets, and it needs dnn.{name}={needed}."
        if config.frames.rule == HEADS and config.frames.skip > 1:
            return f"{its} with one output; frames.rule=multi-frame is for nets with several."
        for key, device in (("device", config.device), ("search.device", config.search.device)):
            if device != "cpu":
                return f"{its}, computed on the CPU: it needs {key}=cpu."
        return ""

    def _make(self, config: Config, progress: Progress, cancelled: Cancelling) -> Ready:
        progress("making the net ready", None)
        chosen = config.dnn
        looped, int8 = chosen.context == "looped", chosen.dtype == "int8"
        net = Nnet3Net(self._plan, config.threads, chosen.product, int8=int8, looped=looped)
        counts = (self.rows(count) * self.subsampling for count in (1, min(config.block, MAX_FRAMES)))
        try_out(net, self._features, {min(count, self.most_frames) for count in counts}, cancelled)
        net.reset()
        return Ready(net, None, "own")
