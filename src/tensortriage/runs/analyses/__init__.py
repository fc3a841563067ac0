"""Derived from answers of engines, or from a model's values: ranges, sums, layouts, plans, tactics, refused nodes."""
