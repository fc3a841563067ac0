"""The smallest piece of a model that still fails."""
