"""python -m pipelines.models FOLDER: write what stands in the folder of an acoustic model, a sentence per line."""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.frontend.parameters import FeatureParameterError
from pipelines.models.errors import ModelError
from pipelines.models.opening import front_end, read_model


def main(arguments: list[str]) -> int:
    """Write the notes of the model, its kind first; 2 with one sentence where it cannot be used."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m pipelines.models FOLDER\n")
        return 2
    try:
        model = read_model(Path(arguments[0]))
        front_end(model)
    except (ModelError, FeatureParameterError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    about = f"{model.origin}: {model.kind}, {len(model.mdef.phones)} phones, {model.n_senones:,} senones"
    sys.stdout.write("\n".join(model.notes or [about]) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
