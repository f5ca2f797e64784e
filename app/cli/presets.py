"""List the presets: named configurations for --preset.

asrscope presets
asrscope presets --json
"""

import argparse

from app.cli import _output
from app.model.report import fields
from pipelines.config import presets, to_dict


def arguments(parser: argparse.ArgumentParser) -> None:
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the presets."""
    known = [presets.load(name) for name in presets.names()]
    if arguments.json:
        rows = [
            fields(p, "name", "title", "description")
            | {"group": p.group or None, "after": p.after or None, "config": to_dict(p.config)}
            for p in known
        ]
        _output.print_json({"schema": 1, "presets": rows})
        return
    wide = max(len(preset.name) for preset in known)
    group = ""
    for preset in known:
        if preset.group != group:
            group = preset.group
            print(f"\n{group}")
        print(f"{preset.name:{wide}} {preset.title}\n{'':{wide}} {preset.description}")
