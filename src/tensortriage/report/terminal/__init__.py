"""Results of single commands as text for a terminal."""
