"""Scoring by feed-forward nets: the kernels, their stages and cost laws.

Reading a net belongs to `pipelines.models.nets`, making one to `pipelines.training`; which frames and senones
are requested is decided above (`scoring.frames`, `scoring.senones`). An arithmetic computes a whole net; one in
float32 multiplies each layer by a product (`products`). To add an arithmetic: a module here, a line below, a test.
"""

from collections.abc import Callable, Hashable

from pipelines.config.dnn import Dnn
from pipelines.models import foreign, nets, shrink
from pipelines.models.nets import Net
from pipelines.models.onnx.graph import OnnxModel
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.dnn.dense import Arithmetic, DenseNet
from pipelines.scoring.dnn.onnx import OnnxNet
from pipelines.scoring.dnn.quantised import QuantisedNet
from pipelines.scoring.strategy import Cancelling

__all__ = ["DenseNet", "QuantisedNet", "create", "origin", "read"]

SHRINKING: dict[str, Callable[[Net, float], Net]] = {
    "low-rank": shrink.low_rank,
    "sparse": shrink.sparse,
    "blocks": shrink.blocks,
}


def read(dnn: Dnn, senones: int, features: int, cancelled: Cancelling = lambda: False) -> Net | OnnxModel:
    """Read the net that the settings `dnn` (pipelines.config.Dnn) name, and make it as small as they say.

    For a model of `senones` senones and a front end of `features` features; ModelError when it cannot be used, or
    Cancelled. What did not come with the program is opened by a process with bounds.
    """
    path, shrinking = nets.find(dnn.net), SHRINKING.get(dnn.shrink)
    net: Net | OnnxModel
    if dnn.net in nets.shipped():
        net = nets.load(path, senones, features)
    else:
        net = foreign.load(path, senones, features, MAX_FRAMES, cancelled)
    return net if shrinking is None or isinstance(net, OnnxModel) else shrinking(net, dnn.share)


def origin(dnn: Dnn) -> Hashable:
    """Return the settings that decide the result of `read`, as a key."""
    return dnn.net, dnn.shrink, dnn.share if dnn.shrink in SHRINKING else None


def create(dnn: Dnn, net: Net | OnnxModel, threads: int, max_frames: int) -> Arithmetic:
    """Return the arithmetic for `net` under the settings `dnn`, for at most `max_frames` at a time."""
    if isinstance(net, OnnxModel):
        return OnnxNet(net, threads, max_frames)
    if dnn.dtype == "int8":
        return QuantisedNet(net, threads, max_frames)
    return DenseNet(net, threads, max_frames, dnn.product)
