"""Rules that find, without running anything, what is known to go wrong when a model meets an engine."""
