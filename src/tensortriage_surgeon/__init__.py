"""Edits of models by hand, ``triage surgeon``: each is proven against the model before it is written."""
