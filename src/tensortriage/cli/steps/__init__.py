"""``triage steps``."""
