"""Which nodes are alike, within a model and between two models."""
