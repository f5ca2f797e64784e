"""The search graph: from dictionary, language model or grammar to the packed graph, and its cache.

Passing tokens over it is done one floor up, in `viterbi`.
"""
