"""Values inside the target's own run: marked, and compared layer by layer."""
