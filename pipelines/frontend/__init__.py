"""The front end: audio samples to feature vectors, one module per kind of feature."""
