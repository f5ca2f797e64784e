"""The compiled loops of the search, which trust their arrays; Python comes in by `calls`, `history` and `lattice`.

The ways to them that check what they are given are `workspace`, `words`, `alternatives` and `graph.wfst`.
"""
