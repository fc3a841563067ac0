"""Ops on golden inputs: their own errors, alone and wired together, and what these do to the outputs."""
