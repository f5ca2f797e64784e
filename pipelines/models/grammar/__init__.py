"""Grammars that people write: JSGF files and plain lists of words or phrases, read into one form.

`expression` is that form; `jsgf` and `phrases` are file formats. Nothing here knows of phones or
graphs; `pipelines.search.graph.grammar` makes an acceptor of it.
"""
