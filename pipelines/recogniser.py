"""A recogniser made ready from its settings: front end, scorer and search, in the order of the data.

Everything slow happens here, before the first frame: reading the model, compiling (or finding) the
search graph, compiling kernels. Each step reports progress and can be cancelled between steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pipelines import audio
from pipelines.config import Config
from pipelines.frontend.mfcc import Mfcc
from pipelines.models import dictionary, sphinx
from pipelines.scoring import Scorer, build_scorer
from pipelines.search import compile as graphs
from pipelines.search.viterbi import Viterbi
from profiler.errors import Cancelled
from profiler.spans import Cost, Lane, NullLane, Recorder

Progress = Callable[[str, float | None], None]


@dataclass
class Recogniser:
    """Front end → scorer → search, and the settings they now work by."""

    config: Config
    frontend: Mfcc
    scorer: Scorer
    search: Viterbi

    def configure(self, config: Config) -> None:
        """Take over live settings, from the next block on."""
        self.config = config
        self.scorer.configure(config)
        self.search.configure(config.search)

    def register(self, recorder: Recorder) -> None:
        """Make the stages known to `recorder`."""
        self.frontend.stages(recorder)
        self.scorer.stages(recorder)
        self.search.stages(recorder)

    def costs(self) -> dict[str, Cost]:
        """What each stage computes and moves under the present settings."""
        parts = (self.frontend.costs(), self.scorer.costs(), self.search.costs())
        return {audio.STAGE: audio.COST} | parts[0] | parts[1] | parts[2]


def build(
    config: Config,
    recorder: Recorder,
    lane: Lane | NullLane,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> Recogniser:
    """Make a recogniser ready; spans of group `setup` say where the time went.

    Raises ModelError, LanguageModelError, GraphError (one sentence each) or Cancelled.
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

    with step("setup.model", "reading the acoustic model"):
        model = sphinx.load(sphinx.default_directory())
        words = dictionary.default()
    with step("setup.graph", "finding the search graph"):
        graph = graphs.load_or_build(config.graph, model, words, progress, cancelled)
    with step("setup.compile", "compiling the kernels"):
        frontend = Mfcc(model.feat_params)
        scorer = build_scorer(config, model)
        search = Viterbi(graph, config.search)
        frontend.warm_up()
        scorer.warm_up()
        search.warm_up()
    if cancelled():
        raise Cancelled
    return Recogniser(config, frontend, scorer, search)
