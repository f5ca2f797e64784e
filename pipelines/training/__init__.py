"""Training: speech to learn from, alignments, re-estimated mixtures and neural nets.

`python -m pipelines.training --help` lists what it does. `pipelines.models` reads what it makes.
"""
