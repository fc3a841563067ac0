"""Looking into models, and the plans of engines, without asking what is wrong: `triage inspect`."""
