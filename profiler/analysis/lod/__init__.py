"""Level of detail: numbers per frame reduced to one value per pixel column, at bounded cost.

Running sums for means, a pyramid for minima and maxima, quantiles of blocks. Not here: anything that draws.
"""
