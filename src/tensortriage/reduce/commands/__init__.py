"""A command or a person as the judge of pieces."""
