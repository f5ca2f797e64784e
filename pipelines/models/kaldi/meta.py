"""The file that the Montreal Forced Aligner writes next to a model: `meta.json`, or `meta.yaml` of its older versions.

Of the YAML only what the aligner writes of the features is read: a table of plain values.
"""

from __future__ import annotations

import json
from pathlib import Path

from pipelines.models.errors import ModelError
from pipelines.models.sphinx.binary import read_file
from profiler.files import inputs
from profiler.files.inputs import there

NAMES = ("meta.json", "meta.yaml")
LARGEST = 4 << 20
"""Bytes; with statistics of a dictionary of a hundred thousand words some have a megabyte."""


def read(directory: Path) -> dict[str, str] | None:
    """The settings of the features as texts, without those that have no value; None if there is no such file.

    ModelError if it is none of the aligner's.
    """
    path = next((directory / name for name in NAMES if there(directory / name)), None)
    if path is None:
        return None
    text = read_file(path, LARGEST).decode("utf-8-sig", "replace")
    try:
        tree = inputs.json_tree(text, str(path)) if path.suffix == ".json" else _yaml(text)
    except inputs.InputError as error:
        raise ModelError(str(error)) from None
    features = tree.get("features") if isinstance(tree, dict) else None
    if not isinstance(features, dict):
        raise ModelError(f"{path}: it has no table of features, as the Montreal Forced Aligner writes it")
    plain = {str(key): value for key, value in features.items() if isinstance(value, str | int | float)}
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in plain.items()}


def _yaml(text: str) -> dict[str, dict[str, str]]:
    """The tables of a text by their names."""
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    for line in inputs.lines_of(text):
        key, _, value = line.strip().partition(":")
        value = value.strip().strip("'\"")
        if key.startswith(("#", "- ")):
            continue
        if line[:1].isspace():
            if value not in ("", "null", "~"):
                table[key] = value
        elif not value:
            table = tables[key] = {}
    return tables
