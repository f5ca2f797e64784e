"""The search: compiling the graph (HCLG) once, then token passing over it.

`graph` compiles dictionary and language model or grammar into a `wfst.Graph`; `viterbi` decodes over it with the
compiled loops of `kernels`, and `device` does so in torch. No acoustics here: scores come in.
"""
