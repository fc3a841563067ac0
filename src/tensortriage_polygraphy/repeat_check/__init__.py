"""``triage debug repeat``: how often a check fails."""
