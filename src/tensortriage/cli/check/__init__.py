"""``triage check``: lint and saved accuracy results."""
