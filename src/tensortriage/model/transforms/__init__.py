"""Edits of a model: each takes a model and returns another one that shares the weights."""
