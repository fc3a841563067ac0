"""Executions with their engines, feeds and tensors, and the caches that turn a rerun into a resume."""
