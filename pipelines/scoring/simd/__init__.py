"""Vector steps written as LLVM instructions, for the kernels of all models.

No model is known here.
"""
