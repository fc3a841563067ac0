"""Feeds: from what the user named to arrays."""
