"""``triage debug``: reduce, build, precision, repeat."""
