"""Nets from .onnx files: what stands in one, and the runtime that computes it.

Nets of our own format are `pipelines.models.nets`.
"""
