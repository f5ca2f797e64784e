"""Appearance: colours and sizes of both themes, the style sheet, icons, and the only way to put text into widgets.

Nothing here knows what is shown.
"""
