"""C and H: phones in their contexts, and the senones that each is spelled with.

`expansion` is what the compiler calls, `_kernels` its loops.
"""
