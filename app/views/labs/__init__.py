"""The chart of a lab (`pipelines.labs.chart.Chart`), drawn for page and pictures alike.

`ranges` places values on axes without Qt; `layers` and `panel` give them colours and put them into a plot
(`app.charts.still`); `card` is the whole picture: claim, verdict, panels, what follows. Not here: running labs,
the page that lists them.
"""
