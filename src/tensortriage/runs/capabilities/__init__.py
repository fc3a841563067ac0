"""What an engine can build of a model, and what it says it computes in."""
