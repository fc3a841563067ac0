"""Ops on golden inputs: their own errors, alone and wired together, and the effect of these on the outputs."""
