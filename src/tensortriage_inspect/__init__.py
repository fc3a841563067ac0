"""Looking into models, and the plans of engines, without a diagnosis: `triage inspect`."""
