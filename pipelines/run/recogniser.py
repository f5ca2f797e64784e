"""A recogniser built from its settings: front end, scorer and search.

Everything slow happens here, before the first frame. Each step reports progress and can be cancelled.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from pipelines.audio import loading as audio
from pipelines.config import Config
from pipelines.device import DeviceWork, open_device
from pipelines.models.ctc.front_end import CtcFrontEnd
from pipelines.models.opening import FrontEnd, front_end, open_model
from pipelines.models.sphinx import AcousticModel
from pipelines.run import compiling
from pipelines.scoring import Scorer, build_scorer, is_lazy
from pipelines.scoring.scorer import GmmScorer
from pipelines.scoring.strategy import Made
from pipelines.search.device.viterbi import DeviceViterbi
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.ctc import compile as ctc_graphs
from pipelines.search.graph.wfst import Graph, smallest_graph
from pipelines.search.viterbi import Viterbi
from profiler.errors import BadInput, Cancelled
from profiler.spans import Cost, Lane, NullLane, Recorder

Progress = Callable[[str, float | None], None]


@dataclass
class Recogniser:
    """Front end → scorer → search, and the settings they now work by."""

    config: Config
    frontend: FrontEnd
    scorer: Scorer
    search: Viterbi | DeviceViterbi
    origin: str = ""  # Where the acoustic model's parameters come from, in words
    devices: Mapping[str, DeviceWork] = field(default_factory=dict)  # What scoring and search use, by name
    notes: Sequence[str] = ()
    """What was left out or read otherwise of the model, dictionary, language model or grammar, a sentence each."""

    def configure(self, config: Config, prepared: Made = None) -> None:
        """Take over live settings, from the next block on.

        `prepared`: what `scorer.make_ready` made for them; without it, what they need is made here.
        """
        self.config = config
        self.scorer.configure(config, prepared)
        self.search.configure(config.search)

    @property
    def context(self) -> tuple[int, int] | None:
        """Frames around those of a block that its scores need; None: all of the utterance."""
        if not isinstance(self.frontend, CtcFrontEnd):
            return self.scorer.context
        return None if self.frontend.net.whole else (0, self.frontend.lookahead)

    @property
    def block(self) -> int:
        return -(-self.config.block // self.scorer.subsampling) * self.scorer.subsampling

    def needs_every_frame(self, what: str) -> None:
        """Raise BadInput, for `what` goes frame by frame, where a row of scores stands for several."""
        if (each := self.scorer.subsampling) > 1:
            raise BadInput(f"{what} goes frame by frame, and this net scores one of {each} frames.")

    def take_notices(self) -> list[str]:
        """Return new messages for the user, each once."""
        return [*self.scorer.take_notices(), *(n for work in self.devices.values() for n in work.take_notices())]

    def register(self, recorder: Recorder) -> None:
        self.frontend.stages(recorder)
        self.scorer.stages(recorder)
        self.search.stages(recorder)

    def costs(self) -> dict[str, Cost]:
        return {audio.STAGE: audio.COST} | self.frontend.costs() | self.decoding_costs()

    def decoding_costs(self) -> dict[str, Cost]:
        return self.scorer.costs() | self.search.costs(self.scorer.lazy)


def build(
    config: Config, recorder: Recorder, lane: Lane | NullLane, progress: Progress, cancelled: Callable[[], bool]
) -> Recogniser:
    """Make a recogniser ready; spans of group `setup` say where the time went.

    Raises ModelError, LanguageModelError, GraphError, DeviceError (one sentence each) or Cancelled.
    """

    @contextmanager
    def step(stage: str, title: str) -> Iterator[None]:
        if cancelled():
            raise Cancelled
        progress(title, None)
        number = recorder.stage(stage, "setup")
        start = recorder.clock()
        yield
        lane.put(number, start, recorder.clock())

    devices: dict[str, DeviceWork] = {}
    for name in sorted({config.device, config.search.device} - {"cpu"}):
        with step("setup.device", f"opening {name}"):
            devices[name] = DeviceWork(open_device(name, config.threads), recorder, lane)
    with step("setup.model", "reading the acoustic model"):
        model = open_model(config, progress, cancelled)
    with compiling.in_child(config) as compiled, ThreadPoolExecutor(1) as beside:
        finding = beside.submit(_graph, config, model, progress, cancelled)
        if config.search.device not in devices:
            with step("setup.search", "finding the search graph"):
                Viterbi(smallest_graph(), config.search).warm_up(is_lazy(config))
        with step("setup.graph", "finding the search graph"):
            graph = finding.result()
        with step("setup.compile", "compiling the kernels"):
            search: Viterbi | DeviceViterbi = Viterbi(graph, config.search, model.subsampling)
            if config.search.device in devices:
                search = DeviceViterbi(graph, config.search, devices[config.search.device])
            search.warm_up(is_lazy(config))
            compiled(cancelled)
            frontend = front_end(model)
            scorer = build_scorer(config, model, progress, cancelled, devices.get(config.device))
            frontend.warm_up()
            if config.stream.chunk_ms:
                frontend.start(np.zeros(1, np.float32))  # refuses a model that cannot be decoded as a stream
            scorer.warm_up()
            if isinstance(scorer, GmmScorer):
                for other in compiling.known(config):
                    scorer.load(other)
    if cancelled():
        raise Cancelled
    notes = (*model.notes, *graph.notes, *scorer.notes)
    return Recogniser(config, frontend, scorer, search, model.origin, devices, notes)


def _graph(config: Config, model: AcousticModel, progress: Progress, cancelled: Callable[[], bool]) -> Graph:
    if model.ctc is None:
        return graphs.load_or_build(config.graph, model, progress, cancelled)
    folder = model.directory if config.model_directory else None
    return ctc_graphs.load_or_build(config.graph, model.ctc.units, folder, progress, cancelled)
