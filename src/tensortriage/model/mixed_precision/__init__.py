"""Models in which chosen nodes compute in a narrower format: typed, or rounded node by node."""
