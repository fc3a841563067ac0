"""Options that several commands share, declared once as parts of their requests."""
