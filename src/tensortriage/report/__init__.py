"""Measure once, look many times: a case directory becomes plain data, and every renderer is a function of that data."""
