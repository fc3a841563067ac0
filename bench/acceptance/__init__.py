"""Checks that a stranger would make, from what is promised alone: each a question with its right answer."""
