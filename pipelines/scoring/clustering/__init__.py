"""What Gaussian selection is prepared from: codebooks, codewords, clusters and shortlists of Gaussians.

How a strategy uses them stands in `selection`.
"""
