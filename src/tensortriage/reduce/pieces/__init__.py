"""Pieces of a model: how they are cut, completed, searched, and what shapes they have."""
