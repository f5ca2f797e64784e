"""Warm up small scorers of every kind while each array of the process touches a guard page: python warm_ups.py SIDE."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import sphinx_writer as writer

from pipelines.config import Config, Value, assign
from pipelines.models import sphinx
from pipelines.scoring import build_scorer, selection, senones
from pipelines.scoring.scorer import GmmScorer
from profiler.spans import NullLane
from tests.walls import wall

wall(sys.argv[1])  # type: ignore[arg-type]
with tempfile.TemporaryDirectory() as folder:
    for name, written in (
        ("tied", writer.write_model(Path(folder) / "tied", 4, 40)),
        ("one", writer.write_continuous(Path(folder) / "one", 1, 20)),
        ("three", writer.write_continuous(Path(folder) / "three", 3, 11)),
    ):
        scorer = build_scorer(Config(), sphinx.load(written))
        assert isinstance(scorer, GmmScorer)
        kind = scorer._family.kind
        changes: list[dict[str, Value]] = [{"gmm.component": "int8"}, {"gmm.component": "max"}]
        changes += [{"gmm.senones": rule} for rule in senones.RULES]
        changes += [{"gmm.selection.enabled": True, "gmm.selection.method": m} for m in selection.METHODS[kind]]
        for change in changes:
            scorer.load(assign(Config(), change))
            scorer.warm_up()
            scorer.score(np.zeros((17, 39), np.float32), 0, NullLane())
        print(name, flush=True)
# What numpy still holds at the end of the interpreter is nobody's business here.
sys.stdout.flush()
os._exit(0)
