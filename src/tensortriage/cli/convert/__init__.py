"""``triage convert``."""
