"""Shared parts of workflows: the choice of tensors, and the judge that uses the envelope."""
