"""Edits of model files, proven to keep their results."""
