"""The window: the pages it has, and what lies over them (notices, palette).

Bars, form and actions have rooms of their own; what they show stands in `app.model`, the charts in `app.views`.
"""
