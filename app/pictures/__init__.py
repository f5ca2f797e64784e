"""Pictures of a session or a calibration, with their provenance.

Views paint themselves (`app.views`); here are the layout around them, the provenance and the file formats.
"""
