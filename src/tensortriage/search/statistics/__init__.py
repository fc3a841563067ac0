"""Numbers of repetitions, stopping rules, and associations with failure."""
