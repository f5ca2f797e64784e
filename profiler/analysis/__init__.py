"""What the spans say: pure functions over a session's arrays. Nothing here writes files, draws or measures."""
