"""What the window shows, without widgets: the session at hand, the settings, a run, what is remembered.

Qt's signals and processes, no painting. Bars, form and views read these and ask them for changes.
"""
