"""The search: compiling the graph (HCLG) once, then token passing over it.

`compile` drives `grammar`, `lexicon`, `context` and `topology` through OpenFst into a `wfst.Graph`;
`viterbi` decodes over it with the kernels of `_kernels`. No acoustics here: scores come in.
"""
