"""NaN and Inf: where they originate, and which of them an engine makes by itself."""
