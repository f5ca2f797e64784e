"""Two sides held against each other: their times by repeat and cell, ratios with intervals, and verdicts.

What one session says by itself stands beside this room.
"""
