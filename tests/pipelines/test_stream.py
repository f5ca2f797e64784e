"""Audio that arrives in chunks: the same features and words, and times on a clock that the test moves."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import soundfile

from pipelines.config import Config, Value, assign
from pipelines.config.audio import Stream
from pipelines.frontend.mfcc import PRIOR_FRAMES, Mfcc
from pipelines.models.opening import FrontEnd
from pipelines.run import recogniser as recognisers
from pipelines.run.blocks import Blocks
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser
from pipelines.run.transcript import endpoint
from profiler.arrays import F32
from profiler.session import facts
from profiler.session.reader import Session
from profiler.session.writer import NullWriter
from profiler.spans import NullLane, Recorder
from tests.each import each
from tests.fake_clock import FakeClock
from tests.pipelines.whole_runs import assert_tiled, run

MS = 1_000_000

CHUNK_MS = 160
COMPUTE_NS = 7 * MS  # Of every chunk on the clock of the test


def in_chunks(front: FrontEnd, samples: F32, chunk: int) -> F32:
    utterance = front.start(samples)
    ready = [0]
    for end in range(chunk, len(samples) + chunk, chunk):
        list(utterance.advance(end))
        ready.append(utterance.ready)
    assert ready == sorted(ready)
    assert ready[-1] == utterance.n_frames
    return utterance.features


def kaldi() -> FrontEnd:
    pytest.importorskip("kaldi_native_fbank", reason="Kaldi's features need kaldi-native-fbank")
    from pipelines.frontend.kaldi import KaldiMfcc
    from pipelines.frontend.kaldi_parameters import KaldiFeatures

    return KaldiMfcc(KaldiFeatures(norm_means=False, left_context=0, right_context=0))


def pocketsphinx(**options: str) -> Callable[[], FrontEnd]:
    return lambda: Mfcc({"cmn": "none", **options})


@each("make", [pocketsphinx(remove_noise="yes"), pocketsphinx(feat="1s_c_d_ld_dd"), kaldi])
@each("chunk", [160, 1001, 100_000])
def test_features_in_chunks_are_those_of_the_whole_where_no_mean_is_subtracted(make, chunk):
    front = make()
    samples = np.random.default_rng(1).normal(0, 0.1, 20_011).astype(np.float32)
    np.testing.assert_array_equal(in_chunks(front, samples, chunk), front.features(samples))


@each("feat, frames", [("1s_c", 0), ("1s_c_d", 2), ("1s_c_d_dd", 3), ("1s_c_d_ld_dd", 4), ("13:5", 5)])
def test_a_front_end_says_how_far_it_looks_ahead(feat, frames):
    """Noise after what it says that it needs changes nothing, noise within it does."""
    front = Mfcc({"cmn": "none", "feat": feat})
    assert front.lookahead == frames
    p = front.parameters
    samples = np.random.default_rng(2).normal(0, 0.1, 8000).astype(np.float32)
    there = 20  # frames whose samples are known
    needed = (there - 1) * p.hop_samples + p.window_samples
    other = samples.copy()
    other[needed:] = 0.5
    ready = there - frames
    np.testing.assert_array_equal(front.features(samples)[:ready], front.features(other)[:ready])
    for end, frames_ready in ((needed, ready), (needed - 1, ready - 1)):
        utterance = front.start(samples)
        list(utterance.advance(end))
        assert utterance.ready == frames_ready


def test_the_running_mean_is_of_the_frames_so_far_and_of_the_prior():
    front = Mfcc({"feat": "1s_c", "cmninit": "30,2"})
    prior = np.array([30.0, 2.0, *[0.0] * 11])
    samples = np.random.default_rng(3).normal(0, 0.1, 16_000).astype(np.float32)
    utterance = front.start(samples)

    def mean(n: int) -> np.ndarray:
        cepstra = utterance.cepstra[:n].astype(np.float64)
        return (cepstra.sum(axis=0) + PRIOR_FRAMES * prior) / (n + PRIOR_FRAMES)

    list(utterance.advance(8000))
    n = utterance.ready
    np.testing.assert_allclose(utterance.features[:n], utterance.cepstra[:n] - mean(n), atol=1e-4)
    np.testing.assert_array_equal(front.prior, prior)
    list(utterance.advance(16_000))
    np.testing.assert_allclose(front.prior, mean(utterance.n_frames), rtol=1e-5)  # the next utterance starts from it


@dataclass
class Journal(NullWriter):
    """Keeps what is said of the stream, and when partial results came."""

    clock: FakeClock
    streams: list[facts.StreamFacts] = field(default_factory=list)
    partials: list[tuple[int, str]] = field(default_factory=list)

    @property
    def stream(self) -> facts.StreamFacts:
        return self.streams[-1]

    def meta(self, *about: object) -> None:
        if str(about[0]).startswith("stream/"):
            self.streams.append(msgspec.convert(about[1], facts.StreamFacts))

    def utterance_partial(self, *about: object) -> None:
        self.partials.append((self.clock.now, str(about[1])))


@pytest.fixture(scope="module")
def made(quick: Config) -> tuple[FakeClock, Recorder, Recogniser]:
    clock = FakeClock(5_000 * MS)
    recorder = Recorder(clock)
    config = assign(quick, {"block": 256})
    return clock, recorder, recognisers.build(config, recorder, NullLane(), lambda *_: None, lambda: False)


@pytest.fixture
def decoded(
    made: tuple[FakeClock, Recorder, Recogniser], short: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Journal]:
    """Decodes a short utterance; `compute_ns` of each chunk in order, the last for all that follow."""
    clock, recorder, recogniser = made
    decode = Blocks.decode

    def make(pace: float, *compute_ns: int, path: Path | None = None, **settings: Value) -> Journal:
        costs = list(compute_ns)

        def slow(self: Blocks, *arguments: object) -> object:
            scores = decode(self, *arguments)  # type: ignore[arg-type]
            clock.advance(costs.pop(0) if len(costs) > 1 else costs[0])
            return scores

        monkeypatch.setattr(Blocks, "decode", slow)
        recogniser.config = assign(recogniser.config, {"pace": pace, "stream.chunk_ms": CHUNK_MS, **settings})
        journal, control = Journal(clock), Control()
        monkeypatch.setattr(control, "sleep_until", lambda ns: clock.advance(max(0, ns - clock.now)))
        decoder = Decoder(recogniser, recorder, NullLane(), journal, control)
        decoder.run([Item("a", path or short, None)])
        return journal

    return make


@each("pace", [0.0, 1.0, 2.0])
def test_a_chunk_is_decoded_when_it_has_been_spoken_and_no_sooner(decoded, short, pace):
    stream = decoded(pace, COMPUTE_NS).stream
    seconds = soundfile.info(short).duration
    n = -(-round(seconds * 1000) // CHUNK_MS)
    audio = [*range(CHUNK_MS * MS, n * CHUNK_MS * MS, CHUNK_MS * MS), round(seconds * 1e9)]
    assert stream["audio_ns"] == audio
    assert stream["waited"] == (pace > 0)
    assert stream["lookahead_frames"] == 3
    assert stream["arrived_ns"] == pytest.approx([ns / (pace or 1.0) for ns in audio], abs=n)
    assert stream["started_ns"] == stream["arrived_ns"]
    taken = {b - a for a, b in zip(stream["started_ns"], stream["shown_ns"], strict=True)}
    assert taken == {COMPUTE_NS}


def test_a_slow_chunk_makes_the_ones_after_it_queue(decoded):
    """Chunk 2 takes 400 ms; 3 waits 240 ms for it and 4 the 87 ms that are left, while each takes 7 ms."""
    costs = [COMPUTE_NS, 400 * MS, COMPUTE_NS]
    for pace in (0.0, 1.0):
        stream = decoded(pace, *costs).stream
        queued = [b - a for a, b in zip(stream["arrived_ns"], stream["started_ns"], strict=True)]
        assert queued[:5] == [0, 0, 240 * MS, 87 * MS, 0]


def test_partial_results_come_at_the_times_that_the_session_has(decoded):
    """At pace 1 the clock of the test is that of a person who watches."""
    journal = decoded(1.0, COMPUTE_NS)
    shown, times = np.array(journal.stream["shown_ns"]), [ns for ns, _ in journal.partials]
    assert times == (shown[:-1] - shown[0] + times[0]).tolist()
    words: list[str] = []
    texts = [*(text for _, text in journal.partials), "yes of course"]
    for chunk, kept, tail in journal.stream["changes"]:
        words = [*words[:kept], *(word for word, _, _ in tail)]
        assert texts[chunk].split() == words
    assert words == ["yes", "of", "course"]
    changed = [chunk for chunk, _, _ in journal.stream["changes"]]
    assert all(a < b for a, b in pairwise(changed))


def test_an_endpoint_makes_words_final_and_the_search_begins_anew(decoded, short, tmp_path):
    """Twice the sentence with a second of silence between: rule 2 ends the first after its silence."""
    sound, rate = soundfile.read(short, dtype="float32")
    quiet = np.random.default_rng(1).normal(0, 1e-4, rate)
    path = tmp_path / "twice.wav"
    soundfile.write(path, np.concatenate([sound, quiet, sound]), rate)
    stream = decoded(0.0, COMPUTE_NS, path=path, **{"stream.rule2_cost": 100.0}).stream
    (chunk, words, rule), (last, every, end) = stream["segments"]
    assert (rule, end) == (2, 0)
    assert len(sound) / rate < stream["audio_ns"][chunk] / 1e9 < len(sound) / rate + 1
    assert (words, every, last) == (3, 6, len(stream["shown_ns"]) - 1)
    whole = decoded(0.0, COMPUTE_NS, path=path, **{"stream.endpoint": False}).stream
    assert whole["segments"] == [(len(whole["shown_ns"]) - 1, 6, 0)]


ENDS = [
    (499, 499, 0.0, 0),
    (500, 500, 0.0, 1),
    (300, 49, 0.0, 0),
    (300, 50, 2.0, 2),
    (300, 50, 2.1, 0),
    (300, 100, 8.0, 3),
    (300, 100, 8.1, 0),
    (300, 200, np.inf, 4),
    (1999, 0, np.inf, 0),
    (2000, 0, np.inf, 5),
]


@each("frames, silence, cost, rule", ENDS)
def test_the_five_rules_with_the_defaults_of_kaldi(frames, silence, cost, rule):
    search = SimpleNamespace(silence=silence, relative_cost=cost)
    assert endpoint(Stream(), search, frames) == rule  # type: ignore[arg-type]


def test_a_session_keeps_the_stream_and_its_tiles(quick, short, tmp_path):
    run(assign(quick, {"stream.chunk_ms": 40}), [short], tmp_path / "stream.asrs")
    with closing(Session.open(tmp_path / "stream.asrs")) as session:
        about = session.meta["stream/1"]
        assert about["chunk_ms"] == 40
        chunks = [session.stages[n].name for n in session.spans["stage"]].count("decode.chunk")
        assert chunks == len(about["audio_ns"])
        assert_tiled(session)
        assert session.utterances[0].done
        assert not session.notes
