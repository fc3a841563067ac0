"""Feeds: from the user's options to arrays."""
