"""The engine ``reference``: float64 arithmetic in numpy."""
