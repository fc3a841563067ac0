"""NaN and Inf: where they are born, and which of them an engine makes by itself."""
