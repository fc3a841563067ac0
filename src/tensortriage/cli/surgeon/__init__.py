"""``triage surgeon``: edits of models."""
