"""What is asked about a model and two engines, and the values that the reference gives for it."""
