"""Feeds that are made up: from a seed, or for a sweep of sizes."""
