"""The window: its pages, and the overlays (notices, palette).

Bars, form and actions have their own folders. What they show is in `app.model`, the charts are in `app.views`.
"""
