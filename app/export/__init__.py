"""Sessions in other programs' formats, those of `profiler.export` and those that know presets and words.

One file per format, declared as there.
"""

from profiler import export
from profiler.export import Format


def formats() -> list[Format]:
    from app.export import markdown

    return sorted([*export.formats(), markdown.FORMAT], key=lambda form: form.place)
