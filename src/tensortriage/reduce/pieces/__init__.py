"""Pieces of a model: how they are cut, completed and searched, and their shapes."""
