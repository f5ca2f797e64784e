"""Speech in, words compared: sound files, what a file's container promises, word errors.

No features (`frontend`) and no recogniser.
"""
