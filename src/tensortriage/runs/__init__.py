"""What was executed, on what and with what; the tensors it gave; and the caches that make a rerun a resume."""
