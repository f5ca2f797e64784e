"""Hostile inputs, made from a seed, and what the program does with them: `python -m tests.bench.campaign`.

One file per kind of input, each with `attacks(random, count)`, an iterator of `Attack`; `driver` runs them through
the command line and the real window and looks for tracebacks, hangs, memory and anything touched outside
the attack's folder. The test suite runs a small share of each kind.
"""
