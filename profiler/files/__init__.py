"""The ways to files that persons name, and to the cache; nothing else opens or writes them."""
