"""The front end: audio samples to feature vectors, one module per kind of feature.

Here are the feature parameters that a model requires, and the computation of the features.
Not here: reading sound files (`pipelines.audio.loading`) and anything about senones or words.
"""
