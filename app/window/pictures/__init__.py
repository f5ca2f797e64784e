"""Pictures out of the window: a preview with what can be chosen, drawn by a process of its own."""
