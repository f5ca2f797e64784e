"""How many streams a machine carries: which numbers are tried, in the folder that keeps them
(`study`), and how one is measured (`streams`). What the figures mean is in `app.model.capacity`.
"""
