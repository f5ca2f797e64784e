"""The chart of a lab (`pipelines.labs.chart.Chart`), drawn for page and pictures alike.

`ranges` places values on axes without Qt; `series` gives names their colours; `layers` and `panel` put them into a
plot (`app.charts.still`); `card` is the whole picture: claim, verdict, panels, what follows. Not here: running labs,
the page that lists them.
"""
