"""Looking into models, the plans of engines, and quantizers, without asking what is wrong: `triage inspect`."""
