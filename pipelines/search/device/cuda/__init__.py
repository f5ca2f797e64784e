"""The search as one CUDA kernel: a thread block per utterance, blocks of frames without the host.

`kernel` passes the tokens, `arrays` holds what it works on, `search` decodes utterances with it. It is written in
numba's CUDA, whose simulator runs all of it on a processor (NUMBA_ENABLE_CUDASIM=1 before numba is imported).
"""
