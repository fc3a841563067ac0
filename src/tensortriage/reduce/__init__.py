"""The smallest piece of a model that still fails: what a candidate is, and the ways of asking whether it fails."""
