"""Feeds of models that are run step by step: what is carried from one step to the next, and what the next step gets."""
