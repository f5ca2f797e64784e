"""Gaussian selection: one strategy per module, named as `gmm.selection.method` names it.

A strategy turns features into senone scores. A module holds the class `Tied`, for models whose senones share
codebooks (`scoring.tied`), or `Continuous`, for models whose senones own their Gaussians
(`scoring.continuous`), or both. To add one: a module here, the method's name in the configuration, a test.
What a strategy offers is said in `scoring.strategy`.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from pipelines.scoring.family import Family
from pipelines.scoring.strategy import Kind, Strategy


def methods(kind: Kind | None = None) -> list[str]:
    """Names of all strategies, or of those that a kind of model has; `none` (exact) among them."""
    names = sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))
    return [name for name in names if kind is None or hasattr(_module(name), kind)]


def create(method: str, kind: Kind, family: Family) -> Strategy:
    """The strategy called `method` on the parameters and workspace of `family`; ValueError when unknown.

    `family`: a `scoring.tied.gmm.Gmm` for `Tied`, a `scoring.continuous.Family` for `Continuous`.
    """
    known = methods(kind)
    if method not in known:
        raise ValueError(f"gmm.selection.method is {method!r}, expected one of {', '.join(known)}")
    strategy: Strategy = getattr(_module(method), kind)(family)
    return strategy


def _module(method: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{method.replace('-', '_')}")
