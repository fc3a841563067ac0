"""Feeds that are made: from a seed, a script, or a sweep of sizes."""
