"""Compares two sides: their times by repeat and cell, ratios with intervals, and verdicts.

Analyses of a single session are in the parent package.
"""
