"""Word n-gram language models: what is read, restricted, pruned and written.

`ngram` holds the one in-memory form and its algebra; `lm_bin` and `arpa` are file formats.
Nothing here knows of phones, graphs or search; those live in `pipelines.search`.
"""
