"""The instrument: spans, sessions, machine roofs, attribution and exports of any staged pipeline.

Here lives what measures, stores and explains; what is measured (speech) and what draws it does not.
Nothing in here may import Qt, torch or the packages above it; hot paths import `profiler.spans` only.
"""

from profiler.process import numba_settings

numba_settings.ignore_folder()
