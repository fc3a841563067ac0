"""Whether an error is within its limit."""
