"""The type and shape of every value: declared, inferred, or recorded from a run."""
