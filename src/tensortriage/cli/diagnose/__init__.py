"""``triage diagnose`` and ``triage demo``."""
