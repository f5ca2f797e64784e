"""The file that the Montreal Forced Aligner writes next to a model: `meta.json`, or `meta.yaml` of its older versions.

Of the YAML only what the aligner writes is read: tables and lists of plain values, two levels deep.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pipelines.models.errors import ModelError
from pipelines.models.sphinx.binary import read_file
from profiler.files import inputs
from profiler.files.inputs import there

NAMES = ("meta.json", "meta.yaml")
LARGEST = 4 << 20
"""Bytes; with statistics of a dictionary of a hundred thousand words some have a megabyte."""


@dataclass(frozen=True)
class Meta:
    """`features`: the settings of that name as texts, those without a value left out; `phones`: names, if listed."""

    features: dict[str, str]
    phones: tuple[str, ...]


def read(directory: Path) -> Meta | None:
    """Read the file of `directory`; None if there is none, ModelError if it is none of the aligner's."""
    for name in NAMES:
        path = directory / name
        if there(path):
            text = read_file(path, LARGEST).decode("utf-8-sig", "replace")
            try:
                tree = inputs.json_tree(text, str(path)) if path.suffix == ".json" else _yaml(text)
            except inputs.InputError as error:
                raise ModelError(str(error)) from None
            return _meta(tree, path)
    return None


def _meta(tree: object, path: Path) -> Meta:
    features = tree.get("features") if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or not isinstance(features, dict):
        raise ModelError(f"{path}: it has no table of features, as the Montreal Forced Aligner writes it")
    phones = tree.get("phones", [])
    names = phones if isinstance(phones, list) else []
    plain = {str(key): value for key, value in features.items() if isinstance(value, str | int | float)}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in plain.items()}
    return Meta(texts, tuple(str(name) for name in names if isinstance(name, str)))


def _yaml(text: str) -> dict[str, object]:
    tree: dict[str, object] = {}
    table: dict[str, object] = {}
    items: list[object] = []
    for line in inputs.lines_of(text):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        if word.startswith("- "):
            items.append(_plain(word[2:]))
            continue
        key, _, value = word.partition(":")
        if line[0].isspace():
            if value.strip() not in ("", "null", "~"):
                table[key] = _plain(value)
        elif value.strip():
            tree[key] = _plain(value)
        else:
            table, items = {}, []
            tree[key] = table
            # What follows says which of both it is.
            tree[f"{key} "] = items
    for key in [key for key in tree if key.endswith(" ")]:
        listed = tree.pop(key)
        if listed:
            tree[key[:-1]] = listed
    return tree


def _plain(text: str) -> str:
    return text.strip().strip("'\"")
