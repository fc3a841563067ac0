"""Inspection of models, the plans of engines and quantizers, without a diagnosis: `triage inspect`."""
