"""Shared parts of workflows: which tensors are looked at, and who judges them by the envelope."""
