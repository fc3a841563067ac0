"""Rules that find known problems of a model on engines, without running anything."""
