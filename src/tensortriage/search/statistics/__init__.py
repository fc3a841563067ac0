"""How often to repeat, when to stop, and what goes with failure."""
