"""Where checks and cells run: the option that several commands share."""
