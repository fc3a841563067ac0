"""One diagnosis: the ladder, the remedy that was tried, the repro case."""
