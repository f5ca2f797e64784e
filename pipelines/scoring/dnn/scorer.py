"""The scorer that the decode loop holds when a net scores: frame rule, active senones, and an arithmetic.

All settings of `dnn` are live. The thread that prepares a change reads the net, makes it smaller, puts it into the
form of its arithmetic and tries it, so that kernels are compiled; the next block is scored by it. The net in use is
kept with the float32 weights that it was made of, for another arithmetic on the same net; unused nets are freed.
"""

from collections.abc import Hashable
from functools import partial
from typing import NamedTuple, NoReturn

import numpy as np

from pipelines.config import Config
from pipelines.config.dnn import Dnn
from pipelines.models.errors import ModelError
from pipelines.models.nets import Net
from pipelines.models.onnx.graph import OnnxModel
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import dnn, frames, senones
from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.dnn.dense import Arithmetic
from pipelines.scoring.dnn.onnx import check as check_graph
from pipelines.scoring.dnn.rows import AHEAD
from pipelines.scoring.layered import LayeredScorer, Part, Prepared
from pipelines.scoring.strategy import Cancelling, FrameScorer, Need, Progress, never, quietly
from profiler.arrays import Array
from profiler.errors import Cancelled
from profiler.spans import Recorder

HEADS = "multi-frame"
FRAME_RULES = ("copy", HEADS)
UNSEEN = 1 << 30  # Frames since the last one that went through the hidden layers for the heads, where none did
NET = "net"  # Layer of what is prepared (`LayeredScorer._parts`)


class Ready(NamedTuple):
    """An arithmetic, and the net (read and made smaller) that it was made of, under its key; None: the model's own."""

    arithmetic: Arithmetic
    net: Net | OnnxModel | None
    origin: Hashable


class DnnScorer(LayeredScorer):
    """Scores by the net that `dnn.net` names; the acoustic model says which senones there are.

    A frame that is skipped repeats the scores of the last one scored (the frame-asynchronous net), or is
    scored by a head of its own (the multi-frame net).
    """

    _net: Arithmetic
    _recorder: Recorder | None = None

    def __init__(
        self, config: Config, model: AcousticModel, progress: Progress = quietly, cancelled: Cancelling = never
    ) -> None:
        """Raises ModelError when the net cannot be used with `model`, or Cancelled."""
        n, parents, self._features = model.n_senones, senones.parents_of(model), model.n_features
        layers = {"active": 1, "active-ahead": AHEAD}
        active = {name: senones.Active(n, parents, ahead) for name, ahead in layers.items()}
        super().__init__(n, self._features, active, {name: frames.RULES[name](model) for name in FRAME_RULES})
        self._since = UNSEEN
        self.configure(config, self.make_ready(config, progress, cancelled))

    def stages(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._register(recorder, self._net.stages)

    def warm_up(self) -> None:
        """Compile what the rules call; what computes the net was tried when it was made."""
        silence = np.zeros((3 + sum(self.context), self._features), np.float32)
        spliced = self._net.splice(silence, Meter())
        for layer in self._layers.values() if self._net.can_choose else ():
            layer.begin(spliced, Meter(), ahead=True)
            layer.frame(0, self._all, self._scores, Meter())

    def _arranged(self, config: Config) -> FrameScorer:
        ready = self._ready()
        assert ready is not None, "make_ready made one"
        arithmetic = ready.arithmetic
        # Also the rules that do not act now: none keeps an arithmetic that leaves.
        for layer in self._layers.values():
            # The settings refuse a rule over an arithmetic that cannot choose.
            layer.configure(config.gmm, arithmetic)
        if arithmetic is not getattr(self, "_net", None):
            self._net = arithmetic
            self.context, self.notes = arithmetic.context, arithmetic.notes
            # None of its scores are known yet: it begins with a frame of its own.
            self._last.forget()
            if self._recorder is not None:
                self._meter.register(self._recorder, dict(arithmetic.stages))
        return self._layers.get(config.dnn.senones, arithmetic)

    def _input(self, block: Array) -> Array:
        return self._net.splice(block, self._meter)

    def reset(self) -> None:
        super().reset()
        self._net.reset()
        self._since = UNSEEN

    def configure(self, config: Config, prepared: Prepared | None = None) -> None:
        super().configure(config, prepared)
        self._since = UNSEEN
        self._net.heads_used = self._skip if self._rule is self._rules[HEADS] else 1

    def _ready(self) -> Ready | None:
        ready: Ready | None = self._part(NET, self)
        return ready

    def _parts(self, config: Config) -> list[Part]:
        # What is refused is so where a live change is made ready: a run goes on as before.
        sentence = self._refusal(config)
        make = partial(_refuse, sentence) if sentence else partial(self._make, config)
        return [*super()._parts(config), (NET, self, Need((self._key(config), sentence), make))]

    def _key(self, config: Config) -> Hashable:
        chosen = config.dnn
        product = chosen.product if chosen.dtype == "fp32" else None
        return dnn.origin(config.dnn), chosen.dtype, product, config.threads

    def _refusal(self, config: Config) -> str:
        """Why the net cannot do what the settings say, as far as that is known before it is read; or nothing."""
        if str(config.dnn.net).endswith(".onnx"):
            try:
                check_graph(config)
            except ModelError as error:
                return str(error)
        if config.dnn.context != Dnn().context:
            return f"dnn.context={config.dnn.context} is for nets of Kaldi (nnet3); others keep nothing between blocks."
        ready = self._ready()
        if ready is not None and ready.net is not None and ready.origin == dnn.origin(config.dnn):
            return self._too_few_heads(config, ready.net.card.heads)
        return ""

    def _too_few_heads(self, config: Config, heads: int) -> str:
        if self._rule_of(config) is not self._rules[HEADS] or config.frames.skip <= heads:
            return ""
        return (
            f"The net {config.dnn.net} answers for {heads} frame{'s' * (heads != 1)} at once; "
            f"frames.rule=multi-frame with frames.skip={config.frames.skip} needs {config.frames.skip}."
        )

    def _make(self, config: Config, progress: Progress, cancelled: Cancelling) -> Ready:
        """Make and try the arithmetic for `config`; changes nothing here."""
        held, origin = self._ready(), dnn.origin(config.dnn)
        if held is not None and held.net is not None and held.origin == origin:
            net = held.net
        else:
            progress("reading the net", None)
            net = dnn.read(config.dnn, self.n_senones, self._features, cancelled)
            if sentence := self._too_few_heads(config, net.card.heads):
                raise ModelError(sentence)
        progress("making the net ready", None)
        arithmetic = dnn.create(config.dnn, net, config.threads, MAX_FRAMES)
        try_out(arithmetic, net.card.dimension, {1, min(config.block, MAX_FRAMES)}, cancelled)
        return Ready(arithmetic, net, origin)

    @property
    def replayable(self) -> bool:
        return super().replayable and self._rule is not self._rules[HEADS]

    def _part_of(self, block: Array, scores: Array) -> None:
        if self._rule is not self._rules[HEADS]:
            super()._part_of(block, scores)
            return
        net = self._net
        assert self._rule is not None
        assert net.has_heads, "the settings refuse heads of one that cannot"
        chosen = self._rule.choose(block, self._frame, self._skip, self._meter)
        since = np.empty(len(block), np.int64)
        for t in range(len(block)):
            self._since += 1
            if chosen[t] or self._since >= self._skip:
                chosen[t], self._since = True, 0
            since[t] = self._since
        if chosen.any():
            net.begin_some(block[chosen], self._meter)
        # Without one of its own the block goes on from the last one begun.
        kept = 0 if chosen.any() else net.begun
        net.score_by_heads(np.cumsum(chosen) - 1 + kept, since, scores, self._meter)
        self._last.keep(scores, len(scores) - 1, complete=True)
        self._frame += len(block)


def _refuse(sentence: str, *_: object) -> NoReturn:
    raise ModelError(sentence)


def try_out(arithmetic: Arithmetic, features: int, counts: set[int], cancelled: Cancelling) -> None:
    """Score silence by every method, so that libraries and kernels are ready for these `counts` of frames at once."""
    meter = Meter()
    for count in sorted(counts):
        if cancelled():
            raise Cancelled
        spliced = arithmetic.splice(np.zeros((count + sum(arithmetic.context), features), np.float32), meter)
        scores = np.empty((len(spliced), arithmetic.n_senones), np.float32)
        arithmetic.score(spliced, scores, meter)
        if arithmetic.can_choose:
            arithmetic.begin_some(spliced, meter)
            arithmetic.score_some(0, len(spliced), np.arange(min(4, arithmetic.n_senones)), scores, meter)
        if arithmetic.has_heads:
            first = np.zeros(count, np.int64)
            arithmetic.score_by_heads(first, first, scores, meter)
