"""The front end: audio samples to feature vectors, one module per kind of feature.

Here live the parameters a model demands of its features, and the computation that meets them.
Not here: reading sound files (`pipelines.audio.loading`) and anything that knows of senones or words.
"""
