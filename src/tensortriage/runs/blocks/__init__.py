"""Models that do not fit into memory: run block by block, each fed with golden values that lie on disk."""
