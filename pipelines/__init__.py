"""The recogniser: audio → features → scores → words, and its settings.

What lives here may import `profiler` (on the hot path only `profiler.spans`), never Qt or `app`.
The window imports nothing from here but `config` and `presets`, which stay light.
"""

import profiler  # noqa: F401 - before numba is imported: it says where numba keeps what it compiles
