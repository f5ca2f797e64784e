"""Write what stands in the folder of an acoustic model, a sentence per line: its kind first, then what is left out."""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.frontend.parameters import FeatureParameterError
from pipelines.models.errors import ModelError
from pipelines.models.opening import front_end, read_model
from profiler.process.entry import read_arguments


def main() -> int:
    """Write the notes of the model; 2 with one sentence where it cannot be used."""
    (folder,) = read_arguments("pipelines.models", __doc__, "FOLDER")
    try:
        model = read_model(Path(folder))
        front_end(model)
    except (ModelError, FeatureParameterError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    about = f"{model.origin}: {model.kind}, {len(model.mdef.phones)} phones, {model.n_senones:,} senones"
    sys.stdout.write("\n".join(model.notes or [about]) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
