"""Feeds: from what the user named to arrays, and what PyTorch saved."""
