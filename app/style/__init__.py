"""Appearance: colours and sizes of both themes, style sheet, icons, and the only way to put text into widgets."""
