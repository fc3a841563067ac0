"""``triage engines list|install``: which engines can be used here, and environments for those that cannot."""
