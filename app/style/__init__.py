"""How things look: colours and sizes of both themes, the style sheet, icons, and the one way text gets into widgets.

Nothing here knows what is shown.
"""
