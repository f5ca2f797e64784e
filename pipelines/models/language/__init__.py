"""Word n-gram language models: what is read, restricted, pruned and written."""
