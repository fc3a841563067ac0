"""Builds: one model built again and again, what tells good builds from bad ones, and which choice did it."""
