"""Questions about a model and two engines, and the reference's values."""
