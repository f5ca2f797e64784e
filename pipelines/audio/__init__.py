"""Speech input and word comparison: sound files, integrity of their containers, word errors.

No features (`frontend`) and no recogniser.
"""
