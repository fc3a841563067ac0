"""Which parts of a model an engine can build, and the types it reports to compute in."""
