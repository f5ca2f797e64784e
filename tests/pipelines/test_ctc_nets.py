"""CTC nets: the net of the package hama and folders of sherpa-onnx, held against onnxruntime in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.audio import loading
from pipelines.config import Config
from pipelines.frontend.fbank import SILENCE, Fbank
from pipelines.frontend.mfcc import record
from pipelines.frontend.parameters import FeatureParameterError
from pipelines.models import opening
from pipelines.models.ctc import net as nets
from pipelines.models.ctc import opening as files
from pipelines.models.ctc.front_end import CtcFrontEnd
from pipelines.models.ctc.operators import MOST_BLOCKS, blocks_of, operations
from pipelines.models.errors import ModelError
from pipelines.scoring import build_scorer
from profiler.arrays import F32, Array
from profiler.errors import BadInput, Cancelled
from profiler.spans import NullLane, Recorder
from tests.each import each
from tests.pipelines.ctc_nets import CHUNK, EACH, SHIFT, SYMBOLS, needs_hama, tokens, write
from tests.pipelines.onnx_files import needs_onnx, needs_onnxruntime

pytestmark = [needs_onnx, needs_onnxruntime]


def of(folder: Path | str = "", **more: Any) -> Config:
    return settings.assign(Config(), {"model": "ctc", "model_directory": str(folder), **more})


def front_end_of(folder: Path | str = "", **more: Any) -> CtcFrontEnd:
    made = opening.front_end(opening.open_model(of(folder, **more)))
    assert isinstance(made, CtcFrontEnd)
    return made


def session_of(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def speech(bundled_speech: Path) -> F32:
    return loading.load(bundled_speech / "08-kal16-short.flac").samples


def noise(seconds: float, rate: int = 16_000) -> F32:
    drawn = np.random.default_rng(2).normal(size=round(seconds * rate))
    return (0.1 * drawn).clip(-1, 1).astype(np.float32)


@pytest.fixture(scope="module")
def hama() -> CtcFrontEnd:
    return front_end_of()


@needs_hama
def test_the_net_of_hama_scores_as_onnxruntime_does(speech, hama):
    units = hama.net.units
    assert (len(units.symbols), units.blank, units.boundary) == (191, 190, 189)
    session = session_of(hama.net.path)
    for sound in (speech, speech[:-77], speech[:24_000], noise(0.5)):
        length = np.array([len(sound)], np.int64)
        wanted = session.run(None, {"waveform": sound[None], "waveform_lengths": length})[0][0]
        features = hama.features(sound)
        assert len(features) == hama.n_frames(len(sound)) == len(sound) // 160 + 1
        np.testing.assert_array_equal(features[::2], wanted)
    # The scorer takes one row for each output.
    scorer = build_scorer(of(), opening.open_model(of()))
    assert (scorer.n_senones, scorer.subsampling, scorer.lazy) == (191, 2, False)
    rows = [scorer.score(features[at : at + 16], at, NullLane()) for at in range(0, len(features), 16)]
    np.testing.assert_array_equal(np.concatenate(rows), wanted)
    assert all(row.flags.c_contiguous for row in rows)


@needs_hama
def test_a_long_sound_is_computed_in_windows(speech, hama):
    sound = np.tile(speech, 40 * 16_000 // len(speech) + 1)[: 40 * 16_000]
    parts = list(nets.windows(hama.net.input, hama.n_frames(len(sound))))
    assert [(part.first, part.last) for part in parts] == [(0, 1334), (1334, 2668), (2668, 4001)]
    assert [(part.begin, part.end) for part in parts] == [(0, 1438), (1230, 2772), (2564, 4001)]
    features = hama.features(sound)[::2]
    alone = hama.computing.scores(sound[2564 * 160 :])
    np.testing.assert_array_equal(features[1334:], alone[52 : 52 + len(features) - 1334])


@needs_hama
def test_the_blocks_of_the_net_are_stages_that_tile_its_time(speech, hama):
    recorder = Recorder()
    hama.stages(recorder)
    names = {stage.name: stage.group for stage in recorder.stages}
    assert names["frontend.features"] == "frontend"
    assert {"score.stem", "score.output", *(f"score.backbone {i}" for i in range(11))} <= set(names)
    lane = recorder.lane("decode", decode=True)
    hama.features(speech, 100, lane)
    spans = lane.latest(lane.recorded)
    assert {recorder.stages[int(span["stage"])].name for span in spans} == set(hama.stage_ids) - {"frontend.fbank"}
    assert (spans["start_ns"][1:] == spans["end_ns"][:-1]).all()
    assert set(spans["first_frame"].tolist()) == {100}
    assert set(spans["work0"].tolist()) == {len(hama.features(speech)[::2])}
    assert names.keys() - {"frontend.fbank"} == hama.costs().keys()
    # Operations and bytes follow the outputs of a call.
    profile = hama.profile
    costs = profile.costs(1)
    linear, square = (costs[f"score.{name}"].operations["gemm"] for name in ("backbone 3", "export_attn_layers 1"))
    assert linear.per_work[0] > 0 == linear.per_work[1]
    assert square.per_work[1] > 0
    weights = sum(block.weights for block in profile.blocks)
    assert costs["score.stem"].working_set_bytes == weights
    assert 9e6 < weights < 12e6  # five megabytes in 16 bits, twice that as they are computed with
    assert "Conv" in {operator.kind for operator in profile.operators}


@needs_hama
def test_eight_bit_weights_give_other_scores_of_the_same_speech(speech, hama):
    plain, small = hama.features(speech)[::2], front_end_of(**{"ctc.dtype": "int8"}).features(speech)[::2]
    assert not np.array_equal(plain, small)
    assert (plain.argmax(axis=1) == small.argmax(axis=1)).mean() > 0.95


def test_without_the_package_one_sentence_says_what_installs_it(monkeypatch):
    monkeypatch.setattr(files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install 'asrscope\[ctc\]'"):
        opening.open_model(of())


def fbank(fbank: Fbank, samples: F32) -> F32:
    """Energies of a whole sound at once."""
    source = fbank.source()
    source.accept_waveform(fbank.rate, samples * np.float32(fbank.full_scale))
    source.input_finished()
    frames = np.array([source.get_frame(t) for t in range(source.num_frames_ready)], np.float32)
    return fbank.normalised(frames)


def test_features_are_normalised_as_nemo_does():
    import torch

    x = torch.randn(50, 80, generator=torch.Generator().manual_seed(2)) * 3 + 1
    x[:, 7] = 2.0
    wanted = (x - x.mean(dim=0)) / (x.std(dim=0) + 1e-5)
    np.testing.assert_allclose(Fbank(normalise=True).normalised(x.numpy()), wanted.numpy(), atol=1e-4)
    np.testing.assert_array_equal(Fbank().normalised(x.numpy()), x.numpy())


def log_softmax(x: Array) -> Array:
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


WHOLE = {
    "zipformer2_ctc": ("x", Fbank(), lambda frames: frames),
    "wenet_ctc": ("x", Fbank(full_scale=32_768.0), lambda frames: frames),
    "nemo_ctc": (
        "audio_signal",
        Fbank(low=0.0, high=0.0, window="hann", remove_offset=False, librosa=True, normalise=True),
        lambda frames: frames.T,
    ),
}


@each("layout", WHOLE)
def test_layouts_for_whole_utterances_score_as_onnxruntime_does(layout, tmp_path):
    folder, sound = write(tmp_path, layout), noise(1.234)
    name, features, arranged = WHOLE[layout]
    made = front_end_of(folder)
    units = made.net.units
    assert (units.symbols, units.blank, made.net.log_softmax) == (SYMBOLS, 0, layout == "wenet_ctc")
    x = np.ascontiguousarray(arranged(fbank(features, sound)))[None]
    session = session_of(folder / "model.onnx")
    length = session.get_inputs()[1].name
    wanted = session.run(None, {name: x, length: np.array([123], np.int64)})[0][0]
    scores = made.features(sound)
    assert len(scores) == 123
    np.testing.assert_allclose(scores[::EACH], log_softmax(wanted), atol=2e-5)
    with pytest.raises(FeatureParameterError, match="needs the whole utterance"):
        made.start(sound)


@each("layout, rate, frames, every", [("streaming", 16_000, SHIFT, EACH), ("t_one", 8_000, 30, 3)])
def test_layouts_with_states_score_chunk_by_chunk(layout, rate, frames, every, tmp_path):
    folder, sound = write(tmp_path, layout), noise(1.5, rate)
    made = front_end_of(folder)
    scores = made.features(sound)
    assert made.parameters.target.rate == rate
    session = session_of(folder / "model.onnx")
    inputs, outputs = session.get_inputs(), [output.name for output in session.get_outputs()]
    kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}
    states = [np.zeros([1 if isinstance(n, str) else n for n in i.shape], kinds[i.type]) for i in inputs[1:]]
    if layout == "streaming":
        x = np.full((len(scores) + CHUNK, 80), SILENCE, np.float32)
        x[: len(scores)] = fbank(Fbank(), sound)
        chunks = [x[at : at + CHUNK] for at in range(0, len(scores), frames)]
    else:
        x = np.append(sound, np.zeros(2400, np.float32))
        chunks = [(32767 * x[at : at + 2400]).astype(np.int32)[:, None] for at in range(0, 80 * len(scores), 2400)]
    rows = []
    for chunk in chunks:
        feeds = dict(zip([i.name for i in inputs], [chunk[None], *states], strict=True))
        given, *states = session.run(outputs, feeds)
        rows.append(given[0])
    np.testing.assert_array_equal(scores[::every], np.concatenate(rows)[: len(scores[::every])])

    heard, ready = made.start(sound), [0]
    for end in range(rate // 10, len(sound) + 1, rate // 10):
        record(heard.advance(end), made.stage_ids, 0, None)
        ready.append(heard.ready)
    assert ready == sorted(ready)
    assert ready[5] < heard.ready == heard.n_frames
    np.testing.assert_array_equal(heard.features[::every], scores[::every])


BAD_ENTRIES: list[tuple[str, dict[str, str | None], str]] = [
    ("zipformer2_ctc", {"model_type": None}, "has no model_type in its metadata, which tells the layouts apart"),
    ("zipformer2_ctc", {"model_type": "whisper"}, "is of the model_type 'whisper'; CTC nets of these are read"),
    ("nemo_ctc", {"subsampling_factor": None}, "does not say its subsampling_factor in its metadata"),
    ("nemo_ctc", {"subsampling_factor": "four"}, "subsampling_factor must be a whole number from 1 to 16, not 'four'"),
    ("nemo_ctc", {"subsampling_factor": "1"}, r"gives 25 outputs for 100 frames; its metadata say one for 1"),
    ("nemo_ctc", {"normalize_type": "all_features"}, "'all_features' is not computed; per_feature is"),
    ("nemo_ctc", {"is_giga_am": "1"}, "is a GigaAM, whose features are not computed"),
    ("streaming", {"decode_chunk_len": "30"}, "chunks of 45 frames, 30 apart, do not fit one output for 4"),
    ("t_one", {"sample_rate": "8001"}, "a sample_rate of 8001 Hz in chunks of 30 × 10 ms is not computed"),
    ("streaming", {"model_type": "zipformer2_ctc"}, "has 3 inputs; a zipformer2_ctc for whole utterances has two"),
]


@each("layout, entries, sentence", BAD_ENTRIES)
def test_metadata_that_do_not_fit_are_refused(layout, entries, sentence, tmp_path):
    with pytest.raises(ModelError, match=sentence):
        opening.open_model(of(write(tmp_path, layout, **entries)))


BAD_TOKENS = [
    ("", "does not number its 0 units"),
    ("a b c\n", "line 1 is not a unit and a number of its own"),
    ("a 0\nb 2\n", "does not number its 2 units from 0 without a gap"),
    ("a 0\nb 99999999\n", "line 2 is not a unit"),
    ("a 0\nb 1\nc 2\nd 3\ne 4\n", "names no blank"),
    (tokens(SYMBOLS[:4]), r"gives the shape \[1, \d+, 5\], and its symbols ask for \[1, outputs, 4\]"),
    (None, "tokens.txt"),
]


@each("text, sentence", BAD_TOKENS)
def test_lists_of_units_that_do_not_fit_are_refused(text, sentence, tmp_path):
    folder = write(tmp_path, "zipformer2_ctc")
    (folder / "tokens.txt").unlink()
    if text is not None:
        (folder / "tokens.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=sentence):
        opening.open_model(of(folder))


def test_a_unit_may_be_a_space_and_bytes_may_be_no_text(tmp_path):
    folder = write(tmp_path, "zipformer2_ctc")
    (folder / "tokens.txt").write_bytes(b"<blk> 0\r\n  1\n\xffa 2\nc 3\n<wb> 4\n\n")
    units = files.load(str(folder)).units
    assert (units.symbols[1], units.boundary) == (" ", 4)
    (folder / "model.onnx").unlink()
    with pytest.raises(ModelError, match=r"has no model.onnx; the folder of a CTC net has one"):
        files.load(str(folder))


def test_a_folder_chooses_the_model_and_its_scale(tmp_path):
    folder = write(tmp_path, "zipformer2_ctc")
    config = settings.assign_with_folder(Config(), {"model_directory": str(folder)})
    assert (config.model, config.search.acoustic_scale, config.search.insertion_penalty) == ("ctc", 1.0, 0.0)


def damaged(folder: Path, change: Callable[[Any], None]) -> Path:
    import onnx

    made = onnx.load(write(folder, "zipformer2_ctc") / "model.onnx")
    change(made.graph)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    return folder


def adding(nodes: str, scores: str = "log_probs") -> Callable[[Any], None]:
    """Put `nodes` behind all others; those before them give `scores`."""

    def change(graph: Any) -> None:
        from onnx import parser

        more = parser.parse_graph(f"more () => () <int64[1] axis = {{0}}, bool sure = {{1}}> {{ {nodes} }}")
        graph.node[-2].output[0] = scores
        graph.node.extend(more.node)
        graph.initializer.extend(more.initializer)

    return change


def branch(operator: str) -> Callable[[Any], None]:
    then, otherwise = (
        f"{name} () => (float[N,T4,5] {name}) {{ {name} = {kind}(first) }}"
        for name, kind in (("same", "Identity"), ("other", operator))
    )
    return adding(f"log_probs = If (sure) <then_branch = {then}, else_branch = {otherwise}>", "first")


def first_weights(**fields: Any) -> Callable[[Any], None]:
    def change(graph: Any) -> None:
        weights = next(one for one in graph.initializer if one.name == "w0")
        weights.MergeFrom(type(weights)(**fields))

    return change


SIZED = "t = Cast<to=7>(x) s = ReduceMax<keepdims=0>(t) sizes = Unsqueeze(s, axis) much = ConstantOfShape(sizes)"
DAMAGE: list[tuple[Callable[[Any], None], str]] = [
    (adding(SIZED), "makes a tensor of a size that depends on the speech"),
    (adding("y = Loop<body = body () => () {}>(axis, sure)"), r"holds a graph of its own \(a branch or a loop\)"),
    (first_weights(data_location=1, external_data=[{"key": "location", "value": "/etc/passwd"}]), "in another file"),
    (first_weights(raw_data=np.full(8 * 80 * 3, np.nan, np.float32).tobytes()), "value that is not a finite number"),
    (lambda graph: graph.ClearField("output"), "has no input or no output"),
    (branch("RandomUniformLike"), "is random"),
]


@each("change, sentence", DAMAGE)
def test_graphs_that_a_net_cannot_have_are_refused(change, sentence, tmp_path):
    with pytest.raises(ModelError, match=sentence):
        opening.open_model(of(damaged(tmp_path, change)))


def test_a_branch_is_read(tmp_path):
    opening.open_model(of(damaged(tmp_path, branch("Identity"))))


@pytest.mark.slow
def test_the_process_that_reads_a_strangers_net_can_be_cancelled(tmp_path, monkeypatch):
    folder = write(tmp_path, "nemo_ctc")
    monkeypatch.undo()  # read by a process of its own
    assert files.load(str(folder)).units.symbols == SYMBOLS
    asked = iter([False, True])
    with pytest.raises(Cancelled):
        files.load(str(folder), lambda: next(asked, True))
    (folder / "model.onnx").write_bytes(b"\x00" * 64)
    with pytest.raises(BadInput, match="is not a whole ONNX file"):
        files.load(str(folder))


def test_blocks_are_the_outermost_numbered_parts_that_have_parts():
    names = [
        "/Conv",
        "/MatMul/MatmulTransposeFusion/",
        "/net/stem/stem.0/Conv",
        "/net/encoders.0/attn/MatMul",
        "/net/encoders.0/ff/ff.0/MatMul",
        "/net/Add",
        "/net/encoders.1/attn/MatMul",
        "fused /net/encoders.1/ff/Gelu",
        "/net/proj/Conv",
        "/net/LogSoftmax",
    ]
    parts = ["stem", "encoders.0", "encoders.0", "encoders.0", "encoders.1", "encoders.1", "output", "output"]
    assert blocks_of(names, takes_sound=True) == ["features", "features", *parts]
    assert blocks_of(names, takes_sound=False) == ["stem", "stem", *parts]
    assert blocks_of(["/a/Conv", "/b/Add"], takes_sound=False) == ["net", "net"]
    many = [f"/layers.{n}/conv/Conv" for n in range(MOST_BLOCKS + 1)]
    assert set(blocks_of(many, takes_sound=False)) == {"net"}
    assert len(set(blocks_of(many[1:], takes_sound=False))) == MOST_BLOCKS
    assert blocks_of([f"/{'a' * 99}.0/conv/Conv"], takes_sound=False) == ["net"]


SHAPES = [
    ("MatMul", [(1, 7, 8), (8, 3)], (1, 7, 3), {"gemm": 2 * 7 * 8 * 3}),
    ("FusedMatMul", [(2, 7, 8), (2, 8, 7)], (2, 7, 7), {"gemm": 2 * 2 * 7 * 8 * 7}),
    ("Gemm", [(7, 8), (3, 8), (3,)], (7, 3), {"gemm": 2 * 7 * 8 * 3}),
    ("Conv", [(1, 6, 9), (4, 3, 5)], (1, 4, 9), {"gemm": 2 * 4 * 9 * 3 * 5}),
    ("ConvInteger", [(1, 6, 9), (4, 6, 1)], (1, 4, 9), {"gemm:int8": 2 * 4 * 9 * 6}),
    ("Sigmoid", [(1, 7)], (1, 7), {"exp": 7, "fma": 14}),
    ("Erf", [(1, 7)], (1, 7), {"exp": 7, "fma": 28}),
    ("Transpose", [(1, 7)], (7, 1), {}),
    ("Clip", [(1, 7)], (1, 7), {"fma": 7}),
]


@each("kind, inputs, output, wanted", SHAPES)
def test_operations_follow_from_shapes(kind, inputs, output, wanted):
    assert operations(kind, inputs, [output]) == wanted


def test_a_made_net_has_its_blocks_as_stages(tmp_path):
    made = front_end_of(write(tmp_path, "zipformer2_ctc"))
    blocks = {block.stage for block in made.profile.blocks}
    assert {"score.stem", "score.layers 0", "score.output"} <= blocks  # the other one is part of a convolution
    gemm = sum(cost.operations["gemm"].per_work[0] for cost in made.costs().values() if "gemm" in cost.operations)
    assert gemm == pytest.approx(2 * (4 * 8 * 80 * 3 + 4 * 8 * 8 * 3 + 5 * 8 * 4), rel=0.05)
