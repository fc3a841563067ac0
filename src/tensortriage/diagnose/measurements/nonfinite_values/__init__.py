"""NaN and Inf: their origins, and those that the engine itself makes."""
