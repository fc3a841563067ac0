"""``triage inspect``: models, engines, tactics and data."""
