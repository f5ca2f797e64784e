"""Hostile inputs, made from a seed, and what the program does with them: `python -m tests.bench.campaign`.

`KINDS` in `__main__` names the kinds of input, each a sound one that `mutate` damages, and others made on purpose;
`driver` runs them through the command line and the real window and looks for tracebacks, hangs, memory and anything
touched outside the attack's folder. The test suite runs a small share of each kind.
"""
