"""Engines as the judge of pieces."""
