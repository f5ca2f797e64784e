"""The claims lab: one file per claim, which says what is measured, how it is judged and what is drawn.

The folder is the list: every module here that is not part of the frame defines `LAB`. Listing imports those modules,
so their tops load neither numba nor torch; what measures is imported where it measures.
"""

import difflib
import importlib
import pkgutil
from typing import Final

from pipelines.labs.declaration import GROUPS, Lab, Measured, Parameters
from profiler.errors import BadInput
from profiler.plain import one_line

FRAME: Final = frozenset({"chart", "declaration", "desk", "figures", "record", "running", "sweep", "verdicts"})
"""Modules that labs are made with, and that are none themselves."""


def names() -> list[str]:
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name.replace("_", "-") for name in modules if name[0] != "_" and name not in FRAME)


def load(name: str) -> Lab[Parameters, Measured]:
    """Return the lab called `name`; raise BadInput with the nearest name if there is none."""
    if name not in names():
        shown = one_line(name, 60)
        near = difflib.get_close_matches(shown, names(), n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}? " if near else ""
        raise BadInput(f"There is no lab called '{shown}'; {hint}`asrscope lab` lists them all.")
    lab = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").LAB
    assert isinstance(lab, Lab), f"{name} does not define LAB"
    return lab


def every() -> dict[str, Lab[Parameters, Measured]]:
    """All labs by name, by group and within a group in the order of the alphabet."""
    order = list(GROUPS)
    loaded = ((name, load(name)) for name in names())
    return dict(sorted(loaded, key=lambda item: (order.index(item[1].group), item[0])))
