"""Fixtures for the envelope's tests."""

from investigations import investigate  # noqa: F401 - a fixture
