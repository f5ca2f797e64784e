"""The glue between the views and pyqtgraph: plots over audio time, items to put into them, still plots.

The only package that imports pyqtgraph. Not here: what a view shows (`app.views`), figures of sessions (`app.model`,
`profiler.analysis`).
"""
