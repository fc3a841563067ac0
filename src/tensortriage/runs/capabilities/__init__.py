"""Which nodes an engine refuses, and the types it reports to compute in."""
