"""What the spans say: pure functions over a session's arrays.

Attribution of time to compute and memory, breakdown by stage and category, cost per frame.
Nothing here writes files, draws, or measures anything itself.
"""
