"""The half of it that runs in the worker's Python."""
