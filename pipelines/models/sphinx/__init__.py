"""CMUSphinx acoustic models: `mdef`, `means`, `variances`, `sendump` and their companions.

`definition` and `parameters` read them, `model.load` puts them together. Nothing needs the library of pocketsphinx.
"""

from pipelines.models.errors import ModelError
from pipelines.models.sphinx.definition import ModelDefinition
from pipelines.models.sphinx.model import AcousticModel, default_directory, load

__all__ = ["AcousticModel", "ModelDefinition", "ModelError", "default_directory", "load"]
