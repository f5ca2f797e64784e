"""The roofs of the machine: measured by a calibration, stored per machine, read by attribution.

What the machine is and does is in the folder above.
"""
