"""Searching the nodes that do not stand 8 bits."""
