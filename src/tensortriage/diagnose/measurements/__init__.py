"""Measurements for the rungs: noise floors, local errors, influences, non-finite values."""
