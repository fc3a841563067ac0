"""Worked out of what engines answered, or of a model's values: ranges, sums, layouts, plans, tactics, refused nodes."""
