"""Searching the nodes that need bits: by an engine or by a command, and what both share."""
