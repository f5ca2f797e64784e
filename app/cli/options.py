"""List every setting that --set and presets can change.

asrscope options
asrscope options --json
"""

import argparse
from dataclasses import asdict

from app.cli import _output
from pipelines import config


def arguments(parser: argparse.ArgumentParser) -> None:
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the options."""
    known = config.options()
    if arguments.json:
        _output.print_json({"schema": 1, "options": [asdict(o) for o in known]})
        return
    layer = None
    for option in known:
        if option.layer != layer:
            layer = option.layer
            print(f"\n{layer}" if layer != known[0].layer else layer)
        span = " | ".join(map(str, option.choices)) or option.type
        if option.minimum is not None and not option.choices:
            span = f"{option.minimum:g}…{option.maximum:g}"
        live = "live" if option.live else "    "
        print(f"  {option.key:28} {live}  {span} [{config.value_text(option.default)}] {option.unit}")
        print(f"  {'':28}       {option.help}")
