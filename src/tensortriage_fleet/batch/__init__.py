"""``triage batch``: many models, feeds, targets and commands as one table of cells, each a process of its own."""
