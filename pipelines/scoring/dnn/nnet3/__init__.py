"""Nets of Kaldi's nnet3 as a model's folder has them: which steps there are (`plan`), computing them (`net`), scoring.

Reading belongs to `pipelines.models.kaldi`. A step is an affine component with what follows it, or what stands alone;
each is a stage of its own.
"""
