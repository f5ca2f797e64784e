"""The session file: the only thing between measuring and showing.

`schema` is the contract (see docs/session-format.md), `writer` records, `reader` follows or replays.
What the numbers mean is not decided here, and nothing here may keep a session in memory only.
"""
