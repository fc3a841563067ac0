"""Differences of two feeds with the same inputs, read off their numbers."""
