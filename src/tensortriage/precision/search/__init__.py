"""Searching the nodes that need bits: by an engine or by a command, and the parts that both share."""
