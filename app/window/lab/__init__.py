"""The Lab page: a gallery of cards, one for each claim, and the page of one lab with its parameters.

Loaded on first use. Not here: what labs are (`pipelines.labs`), their chart (`app.views.labs`).
"""
