"""``triage run``."""
