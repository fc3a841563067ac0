"""Fixtures of tests of what follows the ladder."""

from investigations import investigate  # noqa: F401 - a fixture
