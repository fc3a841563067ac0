"""What is in a model: summary, nodes, weights, repeated blocks."""
