"""List the presets: named configurations for --preset.

asrscope presets
asrscope presets --json
"""

from __future__ import annotations

import argparse

from app.cli import _output
from pipelines import presets
from pipelines.config import to_dict


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the presets."""
    known = [presets.load(name) for name in presets.names()]
    if arguments.json:
        rows = [
            {
                "name": p.name,
                "title": p.title,
                "description": p.description,
                "config": to_dict(p.config),
            }
            for p in known
        ]
        _output.print_json({"schema": 1, "presets": rows})
        return 0
    for preset in known:
        print(f"{preset.name:16} {preset.title}\n{'':16} {preset.description}")
    return 0
