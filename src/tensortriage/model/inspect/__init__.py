"""What is in a model: summary, nodes, weights, sparsity, repeated blocks."""
