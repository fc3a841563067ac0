"""Feeds of models that are run step by step: the values carried from one step to the next, and the new inputs."""
