"""Models that are run step by step: which step goes wrong first, and whether what is carried on drifts as it may."""
