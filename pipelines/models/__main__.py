"""Write what stands in the folder of an acoustic model, a sentence per line: its kind first, then what is left out.

Without a graph of its own it also needs a dictionary: where the shipped one has other phones, a line says so.

Of a CTC net the operators of each block follow, with their time and operations in 9 s of silence, or in a chunk.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.config.recommended import has_graph, is_ctc
from pipelines.frontend.parameters import FeatureParameterError
from pipelines.models import dictionary
from pipelines.models.ctc.front_end import CtcFrontEnd
from pipelines.models.errors import ModelError
from pipelines.models.opening import ctc_model, front_end, read_model
from profiler.process.children import read_arguments


def main() -> int:
    """Write the notes of the model; 2 with one sentence where it cannot be used."""
    (folder,) = read_arguments("pipelines.models", __doc__, "FOLDER")
    more = []
    try:
        model = ctc_model(folder) if is_ctc(folder) else read_model(Path(folder))
        made = front_end(model)
        if isinstance(made, CtcFrontEnd):
            rows = [
                (r.block, r.kind, f"{r.calls:,}", f"{r.ns / 1e6:.2f}", f"{r.gflop:.3f}") for r in made.profile.operators
            ]
            rows = [("block", "operator", "calls", "ms", "GFLOP"), *rows]
            more = [f"{block:24} {kind:28} {calls:>6} {ms:>9} {flop:>9}" for block, kind, calls, ms, flop in rows]
        elif not has_graph(folder):
            mdef = model.mdef
            fillers = {phone for phone, filler in zip(mdef.phones, mdef.filler, strict=True) if filler}
            speech = frozenset(mdef.phones) - fillers
            dictionary.default().without_stress(speech).check_phones(speech, fillers)
    except dictionary.DictionaryError as problem:
        more = [str(problem)]
    except (ModelError, FeatureParameterError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    about = f"{model.origin}: {model.kind}, {len(model.mdef.phones)} phones, {model.n_senones:,} senones"
    sys.stdout.write("\n".join([*(model.notes or [about]), *more]) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
