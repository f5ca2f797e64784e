"""Grammars that people write: JSGF files and plain lists of words or phrases, read into one form."""
