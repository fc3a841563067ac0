"""The questions of the ladder, one module each, by subject."""
