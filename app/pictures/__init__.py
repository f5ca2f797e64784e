"""Pictures of a session or a calibration, with their origin in them.

Views paint themselves (`app.views`); here stand the layout around them, the provenance and the file formats.
"""
