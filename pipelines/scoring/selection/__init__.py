"""Gaussian selection: one strategy per module, named as `gmm.selection.method` names it.

A strategy turns features into senone scores. A module holds the class `Tied`, for models whose senones share
codebooks (`scoring.tied`), or `Continuous`, for models whose senones own their Gaussians
(`scoring.continuous`), or both, each a `scoring.strategy.Strategy`. To add one: a module here, the method's name in
the configuration, a test.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from pipelines.scoring.continuous import ContinuousGmm
from pipelines.scoring.strategy import Kind, Strategy
from pipelines.scoring.tied.gmm import Gmm


def methods(kind: Kind | None = None) -> list[str]:
    """Names of all strategies, or of those that a kind of model has; `none` (exact) among them."""
    names = sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))
    return [name for name in names if kind is None or hasattr(_module(name), kind)]


def create(method: str, kind: Kind, family: Gmm | ContinuousGmm) -> Strategy[Gmm | ContinuousGmm]:
    """The strategy called `method` on the parameters and workspace of `family`; ValueError when unknown.

    `family`: a `Gmm` for `Tied`, a `ContinuousGmm` for `Continuous`.
    """
    known = methods(kind)
    if method not in known:
        raise ValueError(f"gmm.selection.method is {method!r}, expected one of {', '.join(known)}")
    strategy: Strategy[Gmm | ContinuousGmm] = getattr(_module(method), kind)(family)
    return strategy


def _module(method: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{method.replace('-', '_')}")
