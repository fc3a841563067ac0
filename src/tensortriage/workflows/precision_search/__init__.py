"""The fewest nodes that need more bits."""
