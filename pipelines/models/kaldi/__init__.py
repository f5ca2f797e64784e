"""Kaldi acoustic models: `final.mdl`, `tree`, transforms, options of the features and the aligner's meta file.

One module per file format, `model.load` puts them together and checks that they agree.
"""

from pipelines.models.kaldi.model import lies_in, load

__all__ = ["lies_in", "load"]
