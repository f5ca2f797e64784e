"""The search: compiling the graph (HCLG) once, then token passing over it."""
