"""Builds of a target: whether they are what was meant, and the choice that separates good builds from bad ones."""
