"""Faults that show without a reference: rows that the model makes equal, and the engine does not."""
