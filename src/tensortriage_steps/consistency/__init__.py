"""``triage check consistency``."""
