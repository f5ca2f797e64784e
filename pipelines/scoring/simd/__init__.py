"""Vector steps written as LLVM instructions, for the kernels of all models: nowhere else does scoring write any.

Sizes, alignment and addresses are in `vector`; then come tiles, dot products, sparse rows, panels of Gaussians, maxima
and exponentials, made of `instructions`, which only files of this room use. No model is known here.
"""
