"""The compiled loops of the search. They trust their arrays.

Python comes in by `calls`, `history` and `lattice`; `layout` says what the arrays are. The ways to them
that check what they are given are `search.workspace`, `search.words`, `search.alternatives` and `graph.wfst`.
"""
