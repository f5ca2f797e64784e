"""Nets of nnet3: read as they were written, computed as they are defined, and refused where they are unsound."""

import contextlib
import re
from pathlib import Path
from typing import Any

import nnet3_nets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kaldi_writer import integers, vector
from nnet3_nets import UPDATABLE, NetWriter, tagged

from pipelines.models.errors import ModelError
from pipelines.models.kaldi import nnet3
from pipelines.models.kaldi.binary import Reader
from pipelines.models.kaldi.nnet3_components import KINDS
from pipelines.models.nnet3 import Affine, Net
from pipelines.scoring import with_context
from pipelines.scoring.blocks import Meter
from pipelines.scoring.dnn.nnet3.net import Nnet3Net
from pipelines.scoring.dnn.nnet3.plan import plan
from tests.each import each
from tests.pipelines.refusing import flipped, refusal

FRAMES = 50


def read(data: bytes) -> Net:
    return nnet3.read(Reader(b"\0B" + data, Path("final.mdl")))


def computed(net: Net, features: np.ndarray, block: int, subsampling: int = 3, **how: Any) -> np.ndarray:
    """Scores of an utterance, block by block."""
    made = scorer(net, subsampling, **how)
    padded, beyond, rows = with_context(features, net.context), sum(net.context), []
    for at in range(0, len(features), block):
        count = min(block, len(features) - at)
        made.begin = at
        x = made.splice(padded[at : at + count + beyond], Meter())
        scores = np.full((-(-count // subsampling), net.pdfs), np.nan, np.float32)
        made.score(x, scores, Meter())
        rows.append(scores)
    return np.concatenate(rows)


def scorer(net: Net, subsampling: int = 3, product: str = "simd", int8: bool = False, looped: bool = True) -> Nnet3Net:
    return Nnet3Net(plan(net, subsampling), 1, product, int8=int8, looped=looped)


def random_features(w: NetWriter, seed: int = 0, frames: int = FRAMES) -> np.ndarray:
    """With one i-vector for all frames, so that it does not matter which of them is the latest."""
    first, width = w.dims["input"], w.dims["input"] + w.dims["ivector"]
    features = np.random.default_rng(seed).normal(0, 1, (frames, width)).astype(np.float32)
    features[:, first:] = features[0, first:]
    return features


def centred(scores: np.ndarray) -> np.ndarray:
    """Without what is the same for all pdfs of a frame."""
    return scores - scores.mean(axis=1, keepdims=True)


CHAIN = nnet3_nets.tdnnf()
FEATURES = random_features(CHAIN)
WANTED = CHAIN.scores(FEATURES, range(0, FRAMES, 3))


@pytest.fixture(scope="module")
def chain() -> Net:
    return read(CHAIN.net())


def test_a_chain_net_is_read_and_what_trains_it_is_left_out(chain):
    assert (chain.input_dim, chain.ivector_dim, chain.width, chain.pdfs, chain.last) == (5, 4, 9, 8, "output.affine")
    # 1 around the input, then strides of 1, 0, 3 and 3 on either side.
    assert chain.context == (8, 8)
    assert chain.left_out == ("prefinal-xent.affine", "output-xent.affine", "output-xent.log-softmax")
    assert not chain.has_priors
    assert not chain.log_softmax
    weights = [node.component for node in chain.nodes if isinstance(node.component, Affine)]
    norms = [12] * 5 + [10, 6]
    assert chain.parameters == sum(a.weight.size + a.bias.size for a in weights) + 2 * sum(norms)
    # What the output does not need may be anything.
    assert read(config(node("a", "input"), node("b", "b"))).left_out == ("b",)


def test_a_chain_net_gives_the_scores_that_it_stands_for(chain):
    for block in (3, 15, 48, 63):
        for how in ({"looped": True}, {"looped": False}, {"product": "blas"}, {"product": "scalar"}):
            np.testing.assert_allclose(computed(chain, FEATURES, block, **how), WANTED, atol=1e-4)
    error = np.abs(computed(chain, FEATURES, 15, int8=True) - WANTED).max()
    assert 0 < error < 0.05 * np.abs(WANTED).max()


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3]), st.booleans())
def test_any_net_gives_the_scores_that_it_stands_for(seed, subsampling, looped):
    w = nnet3_nets.mixed(seed)
    net, features = read(w.net()), random_features(w, seed, 20)
    wanted = w.scores(features, range(0, 20, subsampling))
    found = computed(net, features, 6 * subsampling, subsampling, looped=looped)
    size = 1 + np.abs(wanted).max()
    np.testing.assert_allclose(centred(found) / size, centred(wanted) / size, atol=1e-4)
    if not net.log_softmax:
        np.testing.assert_allclose(found / size, wanted / size, atol=1e-4)


def test_the_random_nets_have_every_component_and_descriptor():
    texts = b"".join(nnet3_nets.mixed(seed).net() for seed in range(60)) + nnet3_nets.tdnnf().net()
    for kind in ("Append", "Sum", "Scale", "Offset", "Round", "ReplaceIndex", "IfDefined"):
        assert f"{kind}(".encode() in texts
    seen = {kind.decode() for kind in re.findall(rb"</(\w+)Component>", texts)}
    assert seen == set(KINDS) - {"SpecAugmentTimeMask", "NaturalGradientPerElementScale"}


def test_each_frame_has_its_own_i_vector_however_it_is_computed(chain):
    features = np.random.default_rng(3).normal(0, 1, (60, 9)).astype(np.float32)
    found = computed(chain, features, 9, looped=False)
    np.testing.assert_allclose(computed(chain, features, 9), found, atol=1e-4)
    other = features.copy()
    other[59, CHAIN.dims["input"] :] += 1
    changed = np.flatnonzero(np.abs(computed(chain, other, 9) - found).max(axis=1) > 1e-3)
    assert len(changed)
    assert 3 * changed[0] >= 59 - chain.context[1]


def test_a_block_out_of_order_is_computed_as_a_whole(chain):
    made, padded = scorer(chain), with_context(FEATURES, chain.context)
    for at in (0, 9, 27, 18, 0, 36):
        made.begin = at
        block = padded[at : at + 9 + sum(chain.context)]
        for _ in range(2):  # the same array again is the same block again
            scores = np.empty((3, 8), np.float32)
            made.score(made.splice(block, Meter()), scores, Meter())
            np.testing.assert_allclose(scores, WANTED[at // 3 : at // 3 + 3], atol=1e-4)


class Frames(Meter):
    """Counts what stages say."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def close(self, stage: str, work0: int = 0, *others: int, later_ns: int = 0) -> None:
        self.counts[stage] = self.counts.get(stage, 0) + work0


def test_looped_computes_each_frame_once_and_only_those_that_are_needed(chain):
    found, padded = {}, with_context(FEATURES, chain.context)
    for looped in (True, False):
        made, meter = scorer(chain, looped=looped), Frames()
        for at in range(0, 48, 6):
            made.splice(padded[at : at + 6 + 16], meter)
        found[looped] = meter.counts
    # t = −8 … 47 + 7 around the first layer; every third frame from the stride of 3 on.
    assert found[True]["score.lda"] == 7 + 48 + 7
    assert found[True]["score.tdnnf5.affine+relu+batchnorm"] == 16
    # From 3 before the first output to 6 after the last one, of the whole or of each block of two.
    assert found[True]["score.tdnnf4.linear"] == 1 + 16 + 2
    assert found[False]["score.tdnnf4.linear"] == 8 * (1 + 2 + 2)


def test_operations_are_those_of_the_weights(chain):
    steps = plan(chain, 3)
    for int8, operation in ((False, "gemm"), (True, "gemm:int8")):
        made = scorer(chain, int8=int8)
        costs = made.costs(6)
        assert costs.keys() == set(made.stages) - {"score.active outputs"}
        for step in (*steps.trunk, *steps.head):
            if step.weight is None:
                assert operation not in costs[step.stage].operations
                continue
            outputs, inputs = step.weight.shape
            each = costs[step.stage].operations[operation].per_work[0]
            times = outputs if step is steps.head[-1] else 1
            assert each * times == pytest.approx(2 * outputs * (inputs - int8))


def test_chosen_senones_are_those_of_the_whole_layer(chain):
    for int8 in (False, True):
        made = scorer(chain, int8=int8)
        x = made.splice(with_context(FEATURES, chain.context)[: 12 + 16], Meter())
        wanted, found = np.empty((4, 8), np.float32), np.zeros((4, 8), np.float32)
        made.score(x, wanted, Meter())
        made.begin_some(x, Meter())
        made.score_some(1, 3, np.array([6, 2]), found, Meter())
        np.testing.assert_allclose(found[1:3, [6, 2]], wanted[1:3, [6, 2]], atol=1e-5)
        assert not found[:, [0, 1, 3, 4, 5, 7]].any()


def config(*lines: str, last: str = "output-node name=output input=a") -> bytes:
    """A net whose config has these lines, with the affine component `a` of three inputs."""
    w = NetWriter(np.random.default_rng(1))
    w.lines = ["input-node name=input dim=3", *lines, last]
    w.components = [("a", tagged("Affine", **UPDATABLE, LinearParams=np.ones((4, 3)), BiasParams=np.zeros(4)))]
    return w.net()


def node(name: str, source: str) -> str:
    return f"component-node name={name} component=a input={source}"


@each(
    "data, sentence",
    [
        (config(node("a", "Sum(input, Offset(b, -3))"), node("b", "IfDefined(Offset(a, -1))")), "recurrent net (LSTM)"),
        (config("dim-range-node name=r input-node=a dim=2 dim-offset=0", node("a", "input")), "recurrent nets"),
        (config(node("a", "output")), "takes output, which is no node"),
        (config(node("a", "Append(input, input)")), "gets 6 values, its component takes 3"),
        (config(node("a", "Sum(input, Append(input, input))")), "different numbers of parts"),
        (config("input-node name=ivector dim=2", node("a", "Sum(input, ivector)")), "adds up 2 and 3 values"),
        (config(node("a", "Switch(input, input)")), "the descriptor Switch, which is not computed"),
        (config(node("a", "Offset(input, 999999)")), "an offset of 999999, expected -1000 to 1000"),
        (config(node("a", "Offset(input, 501)")), "its context is 501 frames"),
        (config(node("a", "Round(input, 0)")), "a multiple of Round of 0"),
        (config(node("a", "Scale(nan, input)")), "a scale of nan"),
        (config(node("a", "ReplaceIndex(input, t, 0)")), "ReplaceIndex of another node than ivector"),
        (config(node("a", "Sum(" * 50)), "nested more than 20 deep"),
        (config(node("a", f"Append({', '.join(['input'] * 300)})")), "more than 256 terms"),
        (config(node("a", "input input")), "after its input"),
        (config(node("a", "Offset(input")), "ends too early"),
        (config(node("a", "input"), node("a", "input")), "the node a twice"),
        (config("input-node name=input2 dim=3", node("a", "input")), "the input input2"),
        (config("component name=a"), "begins with 'component'"),
        (config(node("a", "input"), last=""), "no output-node called output"),
        (config(node("a", "input"), last="output-node name=output input=input"), "not that of an affine component"),
        (config(node("a", "input")).replace(b"AffineComponent", b"LstmNonlinearityComponent"), "recurrent nets (LSTM"),
        (config(node("a", "input")).replace(b"AffineComponent", b"ConvComponent"), "a ConvComponent; that type is"),
        (config(node("a", "input")).replace(b"<BiasParams>", b"<Bananas>"), "the field Bananas"),
        (config(node("a", "input")).replace(b"component=a", b"component=b"), "the component b, which there is not"),
        (config(node("a", "input")).replace(vector([]), vector([0.5])), "1 priors for 4 pdfs"),
    ],
)
def test_unsound_nets_are_refused(data, sentence):
    refusal(re.escape(sentence), read, data)


def test_time_offsets_that_do_not_fit_are_refused():
    w = NetWriter(np.random.default_rng(1))
    w.output(w.tdnn("a", w.input("input", 3), 4, (-1, 1)))
    data = w.net()
    for offsets in ((1, -1), (0, 5000), (0,) * 3, ()):
        refusal(r"time offsets|inputs|weights|gets", read, data.replace(integers((-1, 1)), integers(offsets)))


def test_a_net_cut_anywhere_is_refused():
    data = CHAIN.net()
    cuts = np.random.default_rng(5).integers(0, len(data), 200).tolist()
    for cut in (*cuts, *range(60), len(data) - 1):
        refusal("final.mdl", read, data[:cut])


def test_flipped_bytes_never_end_in_a_traceback():
    data, rng = CHAIN.net(), np.random.default_rng(6)
    text = data.index(b"<NumComponents>")
    for turn in range(400):
        broken = flipped(data, rng) if turn % 2 else flipped(data[:text], rng) + data[text:]
        with contextlib.suppress(ModelError):
            assert max(read(broken).context) <= nnet3.LARGEST_CONTEXT


def test_a_large_net_of_few_bytes_is_refused():
    w = NetWriter(np.random.default_rng(1))
    x = w.input("input", 60_000)
    for number in range(25):
        x = w.plain(f"n{number}", ("Sum", x, ("Offset", x, -1)))
    w.output(w.affine("a", x, 4))
    refusal("more than a block of frames can hold", read, w.net())
