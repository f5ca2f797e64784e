"""What a recogniser reads from disk: acoustic models, language models and dictionaries."""
