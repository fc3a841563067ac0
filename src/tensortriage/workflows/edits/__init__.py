"""Edits of model files, proven to compute what was computed before."""
