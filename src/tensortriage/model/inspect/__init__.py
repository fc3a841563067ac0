"""The contents of a model: summary, nodes, weights, repeated blocks."""
