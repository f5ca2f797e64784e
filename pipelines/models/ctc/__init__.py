"""Nets with a CTC output: units, the layouts that people have, and their scores. Graphs and search lie in `search`."""
