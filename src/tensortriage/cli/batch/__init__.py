"""``triage batch``."""
