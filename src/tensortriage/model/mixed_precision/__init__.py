"""Models in which some nodes compute in a narrower format: typed, or rounded node by node."""
