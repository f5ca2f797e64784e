"""How many streams a machine carries: which numbers are tried (`study`), how one is measured (`streams`), and the
folder that keeps it (`folder`). What the figures mean is in `app.model.capacity`.
"""
