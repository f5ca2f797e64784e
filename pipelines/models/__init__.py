"""What a recogniser reads from disk: acoustic models, language models and dictionaries.

Readers, their checked data classes and the look-ups on them live here. Nothing here scores a
frame, searches a graph or knows of the profiler: scoring and search do that with these data.
"""
