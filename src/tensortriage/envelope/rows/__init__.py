"""Rows of the registry by subject; `tensortriage.envelope.registry` puts them in order."""
