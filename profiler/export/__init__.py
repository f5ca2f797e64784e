"""Sessions in other programs' formats: one file per format, each with `write(session, path)`.

Exports are one-way; a session is only ever opened again from its own file.
Nothing here computes figures of its own: tables come from `profiler.analysis`.
"""
