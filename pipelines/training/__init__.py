"""Training: speech to learn from, alignments, re-estimated mixtures and neural nets.

`python -m pipelines.training --help` lists what it does. Nothing that recognises speech imports this
package; what it makes is read by `pipelines.models`.
"""
