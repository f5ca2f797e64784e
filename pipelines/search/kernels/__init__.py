"""The compiled loops of the search. They trust their arrays.

The ways to them that check what they are given are `search.workspace`, `search.history` and `search.alternatives`.
"""
