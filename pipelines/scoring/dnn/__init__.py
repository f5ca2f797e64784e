"""Scoring by feed-forward nets: the kernels, their stages and cost laws.

Reading a net belongs to `pipelines.models.nets`, making one to `pipelines.training`; which frames and senones
are asked for is decided above (`scoring.frames`, `scoring.senones`).
"""

from pipelines.scoring.dnn.dense import DenseNet
from pipelines.scoring.dnn.quantised import QuantisedNet

__all__ = ["DenseNet", "QuantisedNet"]
