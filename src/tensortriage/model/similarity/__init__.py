"""Similar nodes, within a model and between two models."""
