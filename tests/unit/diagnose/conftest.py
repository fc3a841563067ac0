"""Investigations of small models."""

from investigations import compared, investigate, last_step  # noqa: F401 - fixtures
