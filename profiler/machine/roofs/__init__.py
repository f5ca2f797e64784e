"""What the machine can do at best: measured by a calibration, kept per machine, read by attribution.

What the machine is and does meanwhile stands beside this room.
"""
